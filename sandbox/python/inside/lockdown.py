"""What a child does to itself before user code: mounts, limits, identity, filter.

Every call is made by number through libc's syscall(); nothing here trusts a
return value that it did not check. The order matters: mounts need the
capabilities that are dropped after them, PDEATHSIG is erased by setuid, seccomp
is last because it forbids all of this.
"""

import base64
import ctypes
import os
import resource
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

# System calls that libc has no wrapper for everywhere. These numbers are the same
# on every architecture that Linux gained them on (asm-generic).
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _CLOSE_RANGE = 428, 429, 430, 431, 432, 436
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

_AT_FDCWD = -100
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 4, 24, 22, 38, 47


def _check(result: int, what: str) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")
    return result


def _syscall(what: str, number: int, *args) -> int:
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return _check(_libc.syscall(ctypes.c_long(number), *wide), what)


def _prctl(what: str, option: int, a: int = 0, b: int = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(a), ctypes.c_ulong(b), ctypes.c_ulong(0), ctypes.c_ulong(0)), what)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def arrange_descriptors(fds: list[int]) -> None:
    """Leave exactly 0 /dev/null, 1 stdout, 2 stderr, 3 hatch."""
    hatch, out, err = (os.dup2(fd, 100 + i) for i, fd in enumerate(fds))
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.dup2(hatch, 3, inheritable=False)
    _syscall("close_range", _CLOSE_RANGE, 4, 0x7FFFFFFF, 0)


def mount_tmpfs(path: str, **options) -> None:
    """Mount a fresh tmpfs, nosuid and nodev, with the given options, at path."""
    fs = _syscall("fsopen", _FSOPEN, b"tmpfs", 1)
    for key, value in options.items():
        _syscall(f"tmpfs {key}", _FSCONFIG, fs, 1, key.encode(), str(value).encode(), 0)
    _syscall("tmpfs", _FSCONFIG, fs, 6, None, None, 0)
    mount = _syscall("fsmount", _FSMOUNT, fs, 1, 2 | 4)
    os.close(fs)
    attach(mount, path)


def attach(mount: int, path: str) -> None:
    _syscall("move_mount", _MOVE_MOUNT, mount, b"", _AT_FDCWD, path.encode(), 4)
    os.close(mount)


def clone_mount(path: str) -> int:
    """A detached clone of the mount at path: it outlives this mount namespace."""
    return _syscall("open_tree", _OPEN_TREE, _AT_FDCWD, path.encode(), 1 | 0o2000000)


def lock(enter: dict) -> None:
    """Give everything up, for good. Raises OSError where a wall can't be raised."""
    policy = enter["policy"]
    uid = enter["uid"]
    _limits(enter, policy)
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # EINVAL: past the last one that this kernel knows
    _prctl("ambient capabilities", _PR_CAP_AMBIENT, 4)
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _drop_capabilities()
    _prctl("PDEATHSIG", _PR_SET_PDEATHSIG, 9)
    _prctl("dumpable", _PR_SET_DUMPABLE, 0)
    _prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, 1)
    if enter["landlock"]:
        _landlock()
    _seccomp(base64.b64decode(enter["filter"]))


def _limits(enter: dict, policy: dict) -> None:
    def bound(what: int, value: int) -> None:
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(what, (value, value))

    bound(resource.RLIMIT_CORE, 0)
    bound(resource.RLIMIT_MEMLOCK, 0)
    bound(resource.RLIMIT_MSGQUEUE, 0)
    bound(resource.RLIMIT_NOFILE, policy["max_open_files"])
    bound(resource.RLIMIT_FSIZE, policy["file_max_bytes"])
    if enter["data_limit"]:
        bound(resource.RLIMIT_DATA, enter["data_limit"])
    if enter["nproc"]:
        bound(resource.RLIMIT_NPROC, enter["nproc"])


def _drop_capabilities() -> None:
    header = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    _check(_libc.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")


def _landlock() -> None:
    """Read and execute everywhere in the root; write only in /session, /tmp and /dev/null."""
    abi = _syscall("landlock version", _LANDLOCK_CREATE, None, 0, 1)
    execute, write, read, read_dir = 1, 2, 4, 8
    everything = (1 << 13) - 1  # ABI 1
    if abi >= 2:
        everything |= 1 << 13  # refer
    if abi >= 3:
        everything |= 1 << 14  # truncate
    attr = struct.pack("QQQ", everything, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _syscall("landlock", _LANDLOCK_CREATE, ctypes.c_char_p(attr[:size]), size, 0)
    folders = everything & ~(1 << 6 | 1 << 9 | 1 << 10 | 1 << 11)  # no devices, sockets, FIFOs
    folders &= ~execute
    for path, access in (("/", execute | read | read_dir), ("/session", folders), ("/tmp", folders), ("/dev/null", read | write)):
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _syscall("landlock rule", _LANDLOCK_ADD, ruleset, 1, ctypes.c_char_p(struct.pack("=Qi", access, fd)), 0)
        os.close(fd)
    _syscall("landlock restrict", _LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _seccomp(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    held = ctypes.create_string_buffer(program, len(program))
    fprog = Program(len(program) // 8, ctypes.cast(held, ctypes.c_char_p))
    _check(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(fprog), 0, 0), "seccomp")
