// Package ramtest keeps the temporary files of tests in memory.
//
// Tests of sandboxes make and remove tens of thousands of files. A disk can be
// bad at that: ext4 without a journal, on which many virtual machines run, gives
// out no inode that was in use during the last minutes, and looks at every one of
// them for each new file. Half of the time of a run was spent there.
package ramtest
