"""The lockdown of a guest before it runs user code, and that of the zygote before it imports packages.

A guest changes its identity and its limits, and gives up capabilities, files and system calls. Its namespaces and
mounts are made from outside (prepare.go). The lockdown consists of system calls by number, in batches that are
prepared before the fork if possible. Each result is checked. The order matters: setuid clears PDEATHSIG, and seccomp
comes last because it forbids all of these calls.
"""

import base64
import ctypes
import errno
import os
import resource
import socket
import stat
import struct

from syscalls import Batch, Step

without: "frozenset[str]" = frozenset()  # names of the isolation layers that a test leaves out

_libc = ctypes.CDLL(None, use_errno=True)

CONNECTION = 3  # the guest's descriptor of its connection to the supervisor
_MSG_NOSIGNAL = 0x4000
_AT_FDCWD = -100
_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_OWN_PID = 0x7FFFFFFF  # a placeholder in a filter for the pid of the guest; no pid is that large
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8  # rights of Landlock to files
_CAPABILITIES = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
_NONE = struct.pack("6I", 0, 0, 0, 0, 0, 0)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_READ, _PR_CAPBSET_DROP = 1, 4, 22, 23, 24
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 38, 47
_SIG_SETMASK = 2


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(what: str, option: int, a: int = 0, b: int = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(a), ctypes.c_ulong(b), ctypes.c_ulong(0), ctypes.c_ulong(0)), what)


# -- steps of a batch


def take_descriptors(batch: Batch, connection: Step, out: Step, err: Step, private: bool) -> int:
    """Leaves only the descriptors 0 /dev/null, 1 stdout, 2 stderr and 3 the connection open, and unblocks all signals.

    private: the guest has namespaces of its own. Without them it dies with this process. Returns the number of steps
    after which the connection is open.
    """
    null = batch.call("/dev/null", "openat", _AT_FDCWD, b"/dev/null", os.O_RDONLY)
    for fd, target, flags in ((null, 0, 0), (out, 1, 0), (err, 2, 0), (connection, CONNECTION, os.O_CLOEXEC)):
        batch.call("descriptors", "dup3", fd, target, flags)
    if "descriptors" not in without:
        batch.call("close_range", "close_range", CONNECTION + 1, 0x7FFFFFFF, 0)
    batch.call("signals", "rt_sigprocmask", _SIG_SETMASK, bytes(8), None, 8)
    steps = batch.steps()
    if not private:
        die_with(batch, os.getpid())
    return steps


def die_with(batch: Batch, parent: int) -> None:
    """Makes the kernel kill this process when its parent dies, and fails if the parent is dead. setuid undoes this."""
    if "death" in without:
        return
    batch.call("PDEATHSIG", "prctl", _PR_SET_PDEATHSIG, 9, 0, 0, 0)
    batch.expect("the parent", batch.call("getppid", "getppid"), parent, errno.ESRCH)


def set_limit(number: int, value: int) -> None:
    resource.setrlimit(number, (value, value))


def namespaces(network: bool) -> int:
    """Returns the namespaces of a guest, as flags of clone."""
    flags = _CLONE_NEWNS | _CLONE_NEWUTS | (_CLONE_NEWNET if network else 0)
    for layer, flag in (("user", _CLONE_NEWUSER), ("pid", _CLONE_NEWPID), ("ipc", _CLONE_NEWIPC)):
        flags |= 0 if layer in without else flag
    return flags


def lock_zygote(control: int, config: dict) -> None:
    """Gives up what the zygote does not need to fork guests, before it imports a package: a package is code of
    strangers. The filter leaves the calls that bear a guest to the service, which gets its listener over control and
    allows them for the guests that it asked for."""
    batch = Batch()
    batch.call("ambient capabilities", "prctl", _PR_CAP_AMBIENT, 4, 0, 0, 0)
    if not without >= {"no_new_privs", "seccomp", "landlock"}:  # these layers need it
        batch.call("no_new_privs", "prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _become_private(batch)
    abi = landlock_abi()
    if abi and config["landlock"]:
        ruleset = landlock_ruleset(batch, abi, config["readable"], config["writable"], config["port"])
        batch.call("landlock restrict", "landlock_restrict_self", ruleset, 0)
        batch.call("close", "close", ruleset)
    listener: Step | None = None
    if config["filter"]:
        program = Filter(base64.b64decode(config["filter"])).program
        listener = batch.call("seccomp", "seccomp", _SET_MODE_FILTER, _NEW_LISTENER, program)
    batch.run()
    if listener is not None:
        fd = batch.result(listener)
        with socket.socket(fileno=os.dup(control)) as sock:
            socket.send_fds(sock, [b"locked"], [fd])
        os.close(fd)


def _become_private(batch: Batch) -> None:
    """Makes this process not dumpable, so that no other process may read its memory."""
    batch.call("dumpable", "prctl", _PR_SET_DUMPABLE, 1 if "dumpable" in without else 0, 0, 0, 0)


def _drop_bounding_set(batch: Batch) -> None:
    for capability in () if "capabilities" in without else range(_last_capability() + 1):
        batch.call("bounding set", "prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)


def _last_capability() -> int:
    """Returns the largest number of a capability that the kernel knows."""
    known = 0
    while _libc.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(known), 0, 0, 0) >= 0:
        known += 1
    return known - 1


def lock(
    batch: Batch, uid: int, parent: int, private: bool, directory: str, ruleset: "Step | None", filter: "Filter | None"
) -> None:
    """Drops all privileges permanently, and changes to a directory that only uid may enter. parent is the pid of the
    zygote as this process sees it: 0 in its own pid namespace. private: the process has namespaces of its own. The
    other limits are set when the guest is assigned to a sandbox."""
    if filter is None and "seccomp" not in without:
        raise OSError("the service named a seccomp filter that the zygote does not have")
    # Without RLIMIT_SIGPENDING the kernel keeps one signal of each number, and does not queue more of them.
    limits = resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_SIGPENDING
    for number in () if "rlimits" in without else limits:
        batch.call("setrlimit", "prlimit64", 0, number, bytes(16), None)
    if private:
        _drop_bounding_set(batch)  # a new user namespace begins with the whole set
    if uid:
        batch.call("setgroups", "setgroups", 0, None)
        batch.call("setresgid", "setresgid", uid, uid, uid)
        batch.call("setresuid", "setresuid", uid, uid, uid)
    batch.call("chdir", "chdir", directory.encode())
    if "capabilities" not in without:
        batch.call("capset", "capset", _CAPABILITIES, _NONE)
    die_with(batch, parent)
    _become_private(batch)
    if ruleset is not None:
        batch.call("landlock restrict", "landlock_restrict_self", ruleset, 0)
        batch.call("close", "close", ruleset)
    if filter is not None:
        filter.fill_in_pid(batch)
        batch.call("seccomp", "prctl", _PR_SET_SECCOMP, 2, filter.program, 0, 0)


def send(batch: Batch, message: bytes) -> None:
    """Sends a message to the supervisor."""
    text = ctypes.create_string_buffer(message, len(message))
    batch.call("send", "sendto", CONNECTION, text, len(message), _MSG_NOSIGNAL, None, 0)


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
