"""What a child does to itself before user code: mounts, limits, identity, filter.

Every call is made by number through libc's syscall(); nothing here trusts a
return value that it did not check. The order matters: mounts need the
capabilities that are dropped after them, PDEATHSIG is erased by setuid, seccomp
is last because it forbids all of this.
"""

import ctypes
import os
import resource
import stat
import struct

without: "frozenset[str]" = frozenset()  # walls that a test leaves out (isolate.Wall)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

# System calls that libc has no wrapper for everywhere. These numbers are the same
# on every architecture that Linux gained them on (asm-generic).
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _CLOSE_RANGE = 428, 429, 430, 431, 432, 436
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446

_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_OWN_PID = 0x7FFFFFFF  # stands in a filter for the process that it is put on; no pid is as large
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8  # Landlock's access to files
_CAPABILITIES = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
_NONE = struct.pack("6I", 0, 0, 0, 0, 0, 0)
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
    if "descriptors" not in without:
        _syscall("close_range", _CLOSE_RANGE, 4, 0x7FFFFFFF, 0)


def bounds(size: int, inodes: int) -> "dict[str, int]":
    """A tmpfs's options that hold it to so many bytes and files."""
    return {} if "quota" in without else {"size": size, "nr_inodes": inodes}


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


def clone_mount(path: str, within: bool = False) -> int:
    """A detached clone of the mount at path, and of the mounts within it where that is
    asked for: it outlives this mount namespace."""
    return _syscall("open_tree", _OPEN_TREE, _AT_FDCWD, path.encode(), 1 | 0o2000000 | (_AT_RECURSIVE if within else 0))


def read_only(path: str) -> None:
    """Make the mount at path read-only here; clones of it stay as they are."""
    attributes = struct.pack("QQQQ", 1, 0, 0, 0)  # set MOUNT_ATTR_RDONLY
    _syscall("mount_setattr", _MOUNT_SETATTR, _AT_FDCWD, path.encode(), 0, ctypes.c_char_p(attributes), len(attributes))


def die_with(parent: int) -> None:
    """Ends this process when parent does, which may have been already. setuid undoes it."""
    _prctl("PDEATHSIG", _PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(0)


def limit(number: int, most: int) -> None:
    resource.setrlimit(number, (most, most))


def before_fork() -> None:
    """What the zygote gives up for itself and all that it forks: capabilities that it
    has can still be used, but none can ever be gained."""
    for capability in () if "capabilities" in without else range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # EINVAL: past the last one that this kernel knows
    _prctl("ambient capabilities", _PR_CAP_AMBIENT, 4)
    if not without >= {"no_new_privs", "seccomp", "landlock"}:  # which need it
        _prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, 1)


def lock(uid: int, ruleset: int, filter: "Filter | None", private: bool) -> None:
    """Give everything up, for good. Raises OSError where a wall can't be raised.
    A ruleset of -1 leaves Landlock out; private is a pid namespace of its own. The
    other limits come with the sandbox that it is given to."""
    if filter is None and "seccomp" not in without:
        raise OSError("no filter of that name")
    parent = os.getppid()
    for what in () if "rlimits" in without else (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        resource.setrlimit(what, (0, 0))
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if "capabilities" not in without:
        _check(_libc.capset(_CAPABILITIES, _NONE), "capset")
    if "death" in without:
        _prctl("PDEATHSIG", _PR_SET_PDEATHSIG, 0)
    else:
        die_with(parent)
    if filter is not None and not private:
        filter.know(os.getpid())
    _prctl("dumpable", _PR_SET_DUMPABLE, 1 if "dumpable" in without else 0)
    if ruleset >= 0:
        _syscall("landlock restrict", _LANDLOCK_RESTRICT, ruleset, 0)
        os.close(ruleset)
    if filter is not None:
        _check(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(filter.program), 0, 0), "seccomp")


class Filter:
    """A seccomp program, an array of struct sock_filter, as the kernel takes it."""

    class _Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    def __init__(self, instructions: bytes):
        self._held = ctypes.create_string_buffer(instructions, len(instructions))
        self._own = [at for at in range(0, len(instructions), 8) if struct.unpack_from("=HBBI", instructions, at)[3] == _OWN_PID]
        self.program = self._Program(len(instructions) // 8, ctypes.cast(self._held, ctypes.c_char_p))

    def know(self, pid: int) -> None:
        """Fills in the process that signals may be sent to."""
        for at in self._own:
            struct.pack_into("=I", self._held, at + 4, pid)

def landlock_ruleset(readable: "list[str]", writable: "list[str]", port: int = 0) -> int:
    """Read below readable; write below writable, and in /dev/null; connect over TCP to
    port, where it is not 0; execute nothing: the Python that runs needs no other program."""
    abi = _syscall("landlock version", _LANDLOCK_CREATE, None, 0, 1)
    everything = (1 << 13) - 1  # ABI 1
    if abi >= 2:
        everything |= 1 << 13  # refer
    if abi >= 3:
        everything |= 1 << 14  # truncate
    attr = struct.pack("QQQ", everything, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _syscall("landlock", _LANDLOCK_CREATE, ctypes.c_char_p(attr[:size]), size, 0)
    for path in readable:
        _landlock_rule(ruleset, path, _READ | _READ_DIR)
    _landlock_rule(ruleset, "/dev/null", _READ | _WRITE)
    for path in writable:
        _landlock_rule(ruleset, path, everything & ~(_EXECUTE | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11))  # no devices, sockets, FIFOs
    if port and abi >= 4:
        _syscall("landlock port", _LANDLOCK_ADD, ruleset, 2, ctypes.c_char_p(struct.pack("=QQ", 2, port)), 0)
    return ruleset


def _landlock_rule(ruleset: int, path: str, access: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        access &= _EXECUTE | _READ | _WRITE
    _syscall("landlock rule", _LANDLOCK_ADD, ruleset, 1, ctypes.c_char_p(struct.pack("=Qi", access, fd)), 0)
    os.close(fd)
