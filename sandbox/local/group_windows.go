package local

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ownGroup makes a process wait until it is in its job: what it starts before would
// not be.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED}
}

// group is a job object with everything that a command starts. It confines nothing.
// The system ends the job with the last handle to it, and the server has the only
// one: whatever ends the server, ends it.
type group struct{ job windows.Handle }

// newGroup puts a process that ownGroup keeps waiting into a job and lets it run. If
// that fails, the process is ended.
func newGroup(p *os.Process) (*group, error) {
	job, err := newJob()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a job for the command: %w", err), p.Kill())
	}
	if err := errors.Join(enter(job, uint32(p.Pid)), resumeThreads(uint32(p.Pid))); err != nil {
		return nil, errors.Join(fmt.Errorf("putting the command into a job: %w", err), p.Kill(), windows.CloseHandle(job))
	}
	return &group{job}, nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	// Leaving the job is not among what is allowed.
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return 0, errors.Join(err, windows.CloseHandle(job))
	}
	return job, nil
}

// enter puts a process into a job.
func enter(job windows.Handle, pid uint32) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

// resumeThreads lets a process run that was made waiting.
func resumeThreads(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	resumed := false
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		if err := resumeThread(entry.ThreadID); err != nil {
			return err
		}
		resumed = true
	}
	if !resumed {
		return fmt.Errorf("process %d has no thread: %w", pid, err)
	}
	return nil
}

func resumeThread(id uint32) error {
	thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, id)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(thread)
	_, err = windows.ResumeThread(thread)
	return err
}

// signal ends everything, since there is no asking on this system.
func (g *group) signal(syscall.Signal) error { return windows.TerminateJobObject(g.job, 1) }

// close ends what is left.
func (g *group) close() { windows.CloseHandle(g.job) }

func signalName(s syscall.Signal) string { return fmt.Sprintf("SIG%d", int(s)) }

func resume(leader) {}
