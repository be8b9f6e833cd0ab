package contain

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_AARCH64
	x32          = 0 // this architecture has no second ABI
)

var refusedHere, byPathHere []uint32
