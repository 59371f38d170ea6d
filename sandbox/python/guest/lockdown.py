"""The lockdown of a guest before it runs user code: mounts, limits, identity, seccomp filter.

It consists of system calls by number, in batches that are prepared before the fork if possible. Each result is checked.
The order matters: mounts need the capabilities that are dropped after them, setuid clears PDEATHSIG, and seccomp comes
last because it forbids all of these calls.
"""

import ctypes
import errno
import os
import resource
import stat
import struct

from syscalls import Batch, Step

without: "frozenset[str]" = frozenset()  # names of the isolation layers that a test leaves out

_libc = ctypes.CDLL(None, use_errno=True)

CONNECTION = 3  # the guest's descriptor of its connection to the supervisor
_MSG_NOSIGNAL = 0x4000
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
_OWN_PID = 0x7FFFFFFF  # a placeholder in a filter for the pid of the guest; no pid is that large
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8  # rights of Landlock to files
_CAPABILITIES = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
_NONE = struct.pack("6I", 0, 0, 0, 0, 0, 0)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 38, 47
_SIG_SETMASK = 2


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(what: str, option: int, a: int = 0, b: int = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(a), ctypes.c_ulong(b), ctypes.c_ulong(0), ctypes.c_ulong(0)), what)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


# -- steps of a batch


def take_descriptors(batch: Batch, connection: Step, out: Step, err: Step, private: bool) -> int:
    """Leaves only the descriptors 0 /dev/null, 1 stdout, 2 stderr and 3 the connection open, and unblocks all signals.

    private: the guest gets namespaces of its own. Without them it dies with this process. Returns the number of steps
    after which the connection is open.
    """
    null = batch.call("/dev/null", "openat", _AT_FDCWD, b"/dev/null", os.O_RDONLY)
    for fd, target, flags in ((null, 0, 0), (out, 1, 0), (err, 2, 0), (connection, CONNECTION, os.O_CLOEXEC)):
        batch.call("descriptors", "dup3", fd, target, flags)
    if "descriptors" not in without:
        batch.call("close_range", "close_range", CONNECTION + 1, 0x7FFFFFFF, 0)
    batch.call("signals", "rt_sigprocmask", _SIG_SETMASK, bytes(8), None, 8)
    steps = batch.steps()
    if private:
        batch.call("unshare", "unshare", _CLONE_NEWNS | _CLONE_NEWUTS | (0 if "ipc" in without else _CLONE_NEWIPC))
    else:
        die_with(batch, os.getpid())
    return steps


def quota(size: int, inodes: int) -> "dict[str, int]":
    """Returns the options of a tmpfs that limit its bytes and files."""
    return {} if "quota" in without else {"size": size, "nr_inodes": inodes}


def mount_tmpfs(batch: Batch, path: str, **options: "str | int") -> None:
    """Mounts a fresh tmpfs at path, nosuid and nodev, with these options."""
    fs = batch.call("fsopen", "fsopen", b"tmpfs", 1)
    for key, value in options.items():
        text = batch.digits(value) if isinstance(value, Step) else str(value).encode()
        batch.call(f"tmpfs {key}", "fsconfig", fs, 1, key.encode(), text, 0)
    batch.call("tmpfs", "fsconfig", fs, 6, None, None, 0)
    mount = batch.call("fsmount", "fsmount", fs, 1, 2 | 4)
    batch.call("close", "close", fs)
    attach(batch, mount, path)


def attach(batch: Batch, mount: int, path: str) -> None:
    batch.call("move_mount", "move_mount", mount, b"", _AT_FDCWD, path.encode(), 4)
    batch.call("close", "close", mount)


def clone_mount(batch: Batch, path: str, within: bool = False) -> Step:
    """Clones the mount at path, with within also the mounts in it. The clone outlives this mount namespace."""
    return batch.call(
        "open_tree", "open_tree", _AT_FDCWD, path.encode(), 1 | 0o2000000 | (_AT_RECURSIVE if within else 0)
    )


def make_read_only(batch: Batch, path: str) -> None:
    """Makes the mount at path read-only here; its clones do not change."""
    attributes = struct.pack("QQQQ", 1, 0, 0, 0)  # set MOUNT_ATTR_RDONLY
    batch.call("mount_setattr", "mount_setattr", _AT_FDCWD, path.encode(), 0, attributes, len(attributes))


def make_dir(batch: Batch, path: str, owner: int = 0) -> None:
    """Makes a directory, unless there is one."""
    batch.call("mkdir", "mkdirat", _AT_FDCWD, path.encode(), 0o777, tolerate=errno.EEXIST)
    if owner:
        batch.call("chown", "fchownat", _AT_FDCWD, path.encode(), owner, owner, 0)


def make_file(batch: Batch, path: str) -> None:
    """Makes an empty file, unless there is one."""
    flags = os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC
    batch.call("close", "close", batch.call("open", "openat", _AT_FDCWD, path.encode(), flags, 0o777))


def die_with(batch: Batch, parent: int) -> None:
    """Makes the kernel kill this process when its parent dies, and fails if the parent is dead. setuid undoes this."""
    batch.call("PDEATHSIG", "prctl", _PR_SET_PDEATHSIG, 9, 0, 0, 0)
    batch.expect("the parent", batch.call("getppid", "getppid"), parent, errno.ESRCH)


def set_limit(number: int, value: int) -> None:
    resource.setrlimit(number, (value, value))


def drop_before_fork() -> None:
    """Prevents that the zygote and its children gain capabilities. The capabilities that it has stay usable."""
    for capability in () if "capabilities" in without else range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # EINVAL: the kernel knows no more capabilities
    _prctl("ambient capabilities", _PR_CAP_AMBIENT, 4)
    if not without >= {"no_new_privs", "seccomp", "landlock"}:  # these layers need it
        _prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, 1)


def lock(batch: Batch, uid: int, parent: int, ruleset: "Step | None", filter: "Filter | None") -> None:
    """Drops all privileges permanently. parent is the pid of the zygote as this process sees it: 0 in its own pid
    namespace. The other limits are set when the guest is assigned to a sandbox."""
    if filter is None and "seccomp" not in without:
        raise OSError("the service named a seccomp filter that the zygote does not have")
    # Without RLIMIT_SIGPENDING the kernel keeps one signal of each number, and does not queue more of them.
    limits = resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_SIGPENDING
    for number in () if "rlimits" in without else limits:
        batch.call("setrlimit", "prlimit64", 0, number, bytes(16), None)
    if uid:
        batch.call("setgroups", "setgroups", 0, None)
        batch.call("setresgid", "setresgid", uid, uid, uid)
        batch.call("setresuid", "setresuid", uid, uid, uid)
    if "capabilities" not in without:
        batch.call("capset", "capset", _CAPABILITIES, _NONE)
    if "death" in without:
        batch.call("PDEATHSIG", "prctl", _PR_SET_PDEATHSIG, 0, 0, 0, 0)
    else:
        die_with(batch, parent)
    batch.call("dumpable", "prctl", _PR_SET_DUMPABLE, 1 if "dumpable" in without else 0, 0, 0, 0)
    if ruleset is not None:
        batch.call("landlock restrict", "landlock_restrict_self", ruleset, 0)
        batch.call("close", "close", ruleset)
    if filter is not None:
        filter.fill_in_pid(batch)
        batch.call("seccomp", "prctl", _PR_SET_SECCOMP, 2, filter.program, 0, 0)


def send_and_close(batch: Batch, message: bytes, fds: "list[int | Step]") -> None:
    """Sends a message to the supervisor with descriptors, and closes these."""
    size = 16 + 4 * len(fds)
    rights = ctypes.create_string_buffer(struct.pack("Nii", size, 1, 1), size)  # a cmsghdr: SOL_SOCKET, SCM_RIGHTS
    for i, fd in enumerate(fds):
        batch.store(rights, 16 + 4 * i, fd)
    text = ctypes.create_string_buffer(message, len(message))
    vector = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(text), len(message)))
    header = struct.pack("PIPNPNi4x", 0, 0, ctypes.addressof(vector), 1, ctypes.addressof(rights), len(rights), 0)
    # the header points to the last three
    batch.call("send", "sendmsg", CONNECTION, header, _MSG_NOSIGNAL, text, vector, rights)
    for fd in fds:
        batch.call("close", "close", fd)


class Filter:
    """A seccomp program, an array of struct sock_filter, in the form that the kernel takes."""

    class _Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    def __init__(self, instructions: bytes):
        self._memory = ctypes.create_string_buffer(instructions, len(instructions))
        self._pid_offsets = [
            at + 4
            for at in range(0, len(instructions), 8)
            if struct.unpack_from("=HBBI", instructions, at)[3] == _OWN_PID
        ]
        self.program = self._Program(len(instructions) // 8, ctypes.cast(self._memory, ctypes.c_char_p))

    def fill_in_pid(self, batch: Batch) -> None:
        """Adds steps that write the pid of the guest, which may send itself signals, into the program."""
        if self._pid_offsets:
            pid = batch.call("getpid", "getpid")
            for offset in self._pid_offsets:
                batch.store(self._memory, offset, pid)


def landlock_abi() -> int:
    """Returns the version of Landlock in the kernel, 0 for none."""
    batch = Batch()
    version = batch.call("landlock version", "landlock_create_ruleset", None, 0, 1)
    try:
        batch.run()
    except OSError:
        return 0
    return batch.result(version)


def landlock_ruleset(batch: Batch, abi: int, readable: "list[str]", writable: "list[str]", port: int = 0) -> Step:
    """Returns a ruleset: read below readable, write below writable and to /dev/null, and connect over TCP to port
    unless it is 0. Nothing can be executed: the Python that runs needs no other program."""
    everything = (1 << 13) - 1  # ABI 1
    if abi >= 2:
        everything |= 1 << 13  # refer
    if abi >= 3:
        everything |= 1 << 14  # truncate
    attr = struct.pack("QQQ", everything, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = batch.call("landlock", "landlock_create_ruleset", attr[:size], size, 0)
    for path in readable:
        access = _READ | _READ_DIR
        if not stat.S_ISDIR(os.stat(path).st_mode):
            access = _READ
        _landlock_rule(batch, ruleset, path, access)
    _landlock_rule(batch, ruleset, "/dev/null", _READ | _WRITE)
    for path in writable:
        access = everything & ~(_EXECUTE | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11)  # no devices, sockets and FIFOs
        _landlock_rule(batch, ruleset, path, access)
    if port and abi >= 4:
        batch.call("landlock port", "landlock_add_rule", ruleset, 2, struct.pack("=QQ", 2, port), 0)
    return ruleset


def _landlock_rule(batch: Batch, ruleset: Step, path: str, access: int) -> None:
    rule = ctypes.create_string_buffer(struct.pack("=Qi", access, -1), 12)
    fd = batch.call(f"landlock {path}", "openat", _AT_FDCWD, path.encode(), os.O_PATH | os.O_CLOEXEC)
    batch.store(rule, 8, fd)
    batch.call("landlock rule", "landlock_add_rule", ruleset, 1, rule, 0)
    batch.call("close", "close", fd)
