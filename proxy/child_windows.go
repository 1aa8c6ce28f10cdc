package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// killedExitCode is the exit code of a process that is ended with its job.
const killedExitCode = 1

// killedStatus is told of a child that the end of its job has not ended yet.
var killedStatus = ExitStatus{Code: killedExitCode}

// childCommand resolves argv[0] by PATH and PATHEXT. A batch file, as npx.cmd
// is, is run by the system's cmd.exe.
func childCommand(argv []string) (*exec.Cmd, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: argv, SysProcAttr: &syscall.SysProcAttr{
		// Ctrl-C at the console is for us, and Ctrl-Break is how we ask
		// the group to end. No console window is opened for the child.
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP,
		HideWindow:    true,
	}}
	if isBatchFile(path) {
		system, err := windows.GetSystemDirectory()
		if err != nil {
			return nil, err
		}
		cmd.Path = filepath.Join(system, "cmd.exe")
		cmd.SysProcAttr.CmdLine, err = batchCommandLine(cmd.Path, path, argv[1:])
		if err != nil {
			return nil, err
		}
	}
	return cmd, nil
}

func exitStatus(state *os.ProcessState) ExitStatus {
	if state == nil {
		return ExitStatus{Code: 1}
	}
	return ExitStatus{Code: state.ExitCode()}
}

// processGroup is the job object of a child and of all that it starts.
type processGroup struct {
	job windows.Handle
	id  int // the child's pid
}

// enterJob puts this process into a job that the kernel ends when its last
// handle is closed. That handle is ours, so it is when this process ends, in
// whatever way. Children are born into the job; one that was put there after
// its start could have started others by then.
var enterJob = sync.OnceValue(func() error {
	job, err := newJob()
	if err != nil {
		return err
	}
	return windows.AssignProcessToJobObject(job, windows.CurrentProcess())
})

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// startGroup starts cmd in a job of its own inside ours, so that it can be
// ended without us.
func startGroup(cmd *exec.Cmd, warn func(error)) (*processGroup, error) {
	if err := enterJob(); err != nil {
		warn(fmt.Errorf("no job object: if this process is killed, the server may stay behind: %w", err))
	}
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	handleErr := cmd.Process.WithHandle(func(process uintptr) {
		err = windows.AssignProcessToJobObject(job, windows.Handle(process))
		if ended, _ := windows.WaitForSingleObject(windows.Handle(process), 0); ended == windows.WAIT_OBJECT_0 {
			err = nil // too late, and no matter
		}
	})
	if err = errors.Join(handleErr, err); err != nil {
		_ = windows.CloseHandle(job)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("it can't be put into a job object: %w", err)
	}
	return &processGroup{job: job, id: cmd.Process.Pid}, nil
}

func (g *processGroup) String() string { return fmt.Sprintf("the job of process %d", g.id) }

// terminate asks the child's process group to end. It is false if there is
// nobody left.
func (g *processGroup) terminate() bool {
	if !g.alive() {
		return false
	}
	// It fails without a console, and then only kill is left.
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.id))
	return true
}

func (g *processGroup) kill() { _ = windows.TerminateJobObject(g.job, killedExitCode) }

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION of winnt.h.
type jobAccounting struct {
	TotalUserTime             int64
	TotalKernelTime           int64
	ThisPeriodTotalUserTime   int64
	ThisPeriodTotalKernelTime int64
	TotalPageFaultCount       uint32
	TotalProcesses            uint32
	ActiveProcesses           uint32
	TotalTerminatedProcesses  uint32
}

func (g *processGroup) alive() bool {
	var info jobAccounting
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.ActiveProcesses > 0
}

func (g *processGroup) close() { _ = windows.CloseHandle(g.job) }

// readQueued has nothing to read: a pipe on Windows has no deadline and is
// closed instead, see stdoutPipe.
func readQueued(*os.File, []byte) (int, error) { return 0, io.EOF }
