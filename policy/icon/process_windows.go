package icon

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// workerAttr starts the worker without a window and out of reach of the
// console's Ctrl-C.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// baseMemory is what the job object allows a worker before its jobs' memory.
const baseMemory = 64 << 20

// limitProcess puts the worker into a job object that bounds its memory, lets
// it start no process and ends it with the handle. What cannot be set is left:
// the worker's watchdog and the parent's clock still hold.
func limitProcess(p *os.Process, memory uint64) (release func()) {
	none := func() {}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return none
	}
	release = func() { _ = windows.CloseHandle(job) }
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags:         windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
			ActiveProcessLimit: 1,
		},
	}
	if memory > 0 {
		info.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY
		info.ProcessMemoryLimit = uintptr(memory + baseMemory)
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var handle windows.Handle
		handle, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
		if err == nil {
			err = windows.AssignProcessToJobObject(job, handle)
			_ = windows.CloseHandle(handle)
		}
	}
	if err != nil {
		release()
		return none
	}
	return release
}
