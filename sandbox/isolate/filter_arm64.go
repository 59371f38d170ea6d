package isolate

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// This architecture never had the calls that newer ones replace.
var (
	allowedLegacy, refusedLegacy, attributesLegacy []int

	opens = map[int]uint32{unix.SYS_OPENAT: dataArg2}
)
