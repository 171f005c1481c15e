// Package protect finds the files of a workspace that programs outside the
// sandbox run or believe by themselves: git's hooks and configuration, what they
// name, tasks and settings of editors and agents. A command must not change or
// plant them, though it may change everything around them.
//
// It only looks, and changes nothing. What it reads was written by commands of
// earlier runs: sizes, depths and numbers have limits, nothing is waited for, and
// a limit that is reached is reported.
package protect
