package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// This architecture has only the newer calls.
var allowedLegacy, refusedLegacy, setsAttributesLegacy []int

// opensFile are the calls that open a file, with the offset of the argument that has
// their flags.
var opensFile = map[int]uint32{unix.SYS_OPENAT: dataArg2}
