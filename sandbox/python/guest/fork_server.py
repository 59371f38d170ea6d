"""The loop of the zygote: forks a child for each request of the service, and reports children that have ended.

Messages go over the control socket (SOCK_SEQPACKET). Each begins with a kind; numbers are big endian:

    F number uid batch    request: fork a child that runs this batch. Descriptors come with it: the connection to the
                          supervisor, stdout and stderr, and the files by which the child joins its control groups
    f number pid          answer: the child, with its pidfd; the pid is that in the namespace of the zygote
    e number text         answer: why there is no child
    x pid status time     report: a child has ended, with its wait status and its CPU time in microseconds

After each fork the zygote, like the child, copies each page that it writes to. So the extension syscall_batch runs this
loop without Python. If it was preloaded, it first moves the memory of the zygote into a file, of which the children
have private mappings (share.c). If the extension is not built, this module does the same without the move.
"""

import array
import ctypes
import os
import select
import signal
import socket
import struct

import syscalls

_REQUEST, _HEAD, _FORKED = struct.Struct(">cIII"), struct.Struct(">cI"), struct.Struct(">cII")
_ENDED = struct.Struct(">cIIQ")
_ENDS, _MAX_GROUPS = 3, 3  # descriptors of a request
_EXIT_PROTOCOL, _EXIT_NO_GROUP = 70, 73  # exit statuses
_CLONE, _CLONE_PIDFD, _SET_AND_CLEAR_TID = syscalls.number("clone"), 0x1000, 0x1200000
_INT = struct.Struct("i")
_DESCRIPTOR_SPACE = socket.CMSG_SPACE((_ENDS + _MAX_GROUPS) * _INT.size)

_libc = ctypes.PyDLL(None, use_errno=True)  # PyDLL keeps the GIL, which a child needs
_libc.syscall.restype = ctypes.c_long

Batches = list["tuple[int, array.array]"]  # the namespaces of a child (CLONE_NEW*), and its batch


def serve(
    control: int,
    signal_fd: int,
    batches: Batches,
    has_hooks: bool = False,
    ready: bytes = b"ready",
    use_huge_pages: bool = False,
) -> int:
    """Sends ready and serves until it returns in a child, with the index of the child's batch. If the socket closes,
    the process exits.

    A child begins in its namespaces and runs its batch, with the three descriptors and the uid as arguments. signal_fd
    is a signalfd of SIGCHLD. has_hooks says that Python's fork hooks must run. use_huge_pages is for the file with the
    memory.
    """
    if syscalls.syscall_batch and not has_hooks:
        return syscalls.syscall_batch.serve(control, signal_fd, batches, ready, use_huge_pages)
    return serve_in_python(control, signal_fd, batches, has_hooks, ready)


def serve_in_python(control: int, signal_fd: int, batches: Batches, has_hooks: bool, ready: bytes) -> int:
    """Does the same as syscall_batch.serve, but for the memory."""
    sock = socket.socket(fileno=control)
    try:
        sock.send(ready)
        poll = select.poll()
        poll.register(control, select.POLLIN)
        poll.register(signal_fd, select.POLLIN)
        while True:
            readable = [fd for fd, _ in poll.poll()]
            if signal_fd in readable:
                os.read(signal_fd, 1024)
                _report_ended(sock)
            if control not in readable:
                continue
            message, rights, flags, _ = sock.recvmsg(_REQUEST.size, _DESCRIPTOR_SPACE)
            if len(message) != _REQUEST.size or not rights:
                os._exit(0)
            if flags & socket.MSG_CTRUNC:  # without all descriptors the child would run outside its control groups
                os._exit(_EXIT_PROTOCOL)
            _, number, uid, index = _REQUEST.unpack(message)
            if index >= len(batches):
                os._exit(_EXIT_PROTOCOL)
            fds = [fd for (fd,) in _INT.iter_unpack(rights[0][2])]
            if _fork_child(sock, number, batches[index], uid, fds, has_hooks) == 0:
                return index
            for fd in fds:
                os.close(fd)
    except ConnectionError:  # the socket has closed before all messages were read
        os._exit(0)
    finally:
        sock.detach()


def _fork_child(
    sock: socket.socket, number: int, birth: "tuple[int, array.array]", uid: int, fds: list[int], has_hooks: bool
) -> int:
    namespaces, words = birth
    try:
        pid, pidfd = _fork_into(namespaces, has_hooks)
    except OSError as error:
        sock.send(_HEAD.pack(b"e", number) + f"fork: {error.strerror}".encode())
        return -1
    if pid == 0:
        _join_groups(fds[_ENDS:])
        syscalls.run(words, *fds[:_ENDS], uid)
        return 0
    sock.sendmsg([_FORKED.pack(b"f", number, pid)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _INT.pack(pidfd))])
    os.close(pidfd)
    return pid


def _join_groups(groups: list[int]) -> None:
    """Joins control groups. Writing "0" moves the writing thread; writing a pid would block all forks and exits of the
    machine."""
    try:
        for group in groups:
            os.write(group, b"0")
            os.close(group)
    except OSError:
        os._exit(_EXIT_NO_GROUP)


def _report_ended(sock: socket.socket) -> None:
    while True:
        try:
            pid, status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        sock.send(_ENDED.pack(b"x", pid, status, round((used.ru_utime + used.ru_stime) * 1e6)))


def _fork_into(namespaces: int, has_hooks: bool) -> "tuple[int, int]":
    """Forks into these namespaces, and returns the pid, 0 in the child, and the pidfd of the child."""
    flags, own, pidfd = signal.SIGCHLD | _CLONE_PIDFD | namespaces, syscalls.own_id, ctypes.c_int(-1)
    if own:
        flags |= _SET_AND_CLEAR_TID
    if has_hooks:
        ctypes.pythonapi.PyOS_BeforeFork()
    own_and_tls = (own, 0) if syscalls.IS_X86 else (0, own)
    pid = _libc.syscall(*map(ctypes.c_long, (_CLONE, flags, 0, ctypes.addressof(pidfd), *own_and_tls)))
    error = ctypes.get_errno()
    if has_hooks:
        (ctypes.pythonapi.PyOS_AfterFork_Parent if pid else ctypes.pythonapi.PyOS_AfterFork_Child)()
    if pid < 0:
        raise OSError(error, os.strerror(error))
    return pid, pidfd.value
