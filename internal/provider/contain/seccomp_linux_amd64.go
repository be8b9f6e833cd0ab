package contain

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_X86_64
	// x32 is the first call number of the x32 ABI.
	x32 = 0x40000000
)

// refusedHere and byPathHere are calls that only this architecture has.
var (
	refusedHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT,
		unix.SYS_SYSFS, unix.SYS__SYSCTL}
	byPathHere = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES,
		unix.SYS_FUTIMESAT}
)
