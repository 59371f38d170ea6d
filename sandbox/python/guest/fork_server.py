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
import socket
import struct
from collections.abc import Callable

import syscalls

_REQUEST, _HEAD, _FORKED = struct.Struct(">cIII"), struct.Struct(">cI"), struct.Struct(">cII")
_ENDED = struct.Struct(">cIIQ")
_ENDS, _MAX_GROUPS = 3, 3  # descriptors of a request
_EXIT_PROTOCOL, _EXIT_NO_GROUP = 70, 73  # exit statuses
_CLONE_NEWPID = 0x20000000
_INT = struct.Struct("i")
_DESCRIPTOR_SPACE = socket.CMSG_SPACE((_ENDS + _MAX_GROUPS) * _INT.size)

_libc = ctypes.PyDLL(None, use_errno=True)  # PyDLL keeps the GIL, which a child needs

Batches = list["array.array"]


def serve(
    control: int,
    signal_fd: int,
    own_pidfd: int,
    batches: Batches,
    fork: "Callable[[], int] | None" = None,
    ready: bytes = b"ready",
    use_huge_pages: bool = False,
) -> int:
    """Sends ready and serves until it returns in a child, with the index of the child's batch. If the socket closes,
    the process exits.

    A child first runs one of batches, with the three descriptors and the uid as arguments. signal_fd is a signalfd of
    SIGCHLD. own_pidfd is a pidfd of this process if each child gets its own pid namespace, else -1. Such a namespace
    can be used for one fork; the zygote then returns to its own namespace through own_pidfd. fork replaces the plain
    fork. use_huge_pages is for the file with the memory.
    """
    if syscalls.syscall_batch and not fork:
        return syscalls.syscall_batch.serve(control, signal_fd, own_pidfd, batches, ready, use_huge_pages)
    return serve_in_python(control, signal_fd, own_pidfd, batches, fork or _plain_fork, ready)


def serve_in_python(
    control: int, signal_fd: int, own_pidfd: int, batches: Batches, fork: "Callable[[], int]", ready: bytes
) -> int:
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
            if _fork_child(sock, number, batches[index], uid, fds, own_pidfd, fork) == 0:
                return index
            for fd in fds:
                os.close(fd)
    finally:
        sock.detach()


def _fork_child(sock, number: int, words: "array.array", uid: int, fds: list[int], own_pidfd: int, fork) -> int:
    pid = -1
    try:
        try:
            if own_pidfd >= 0 and _libc.unshare(_CLONE_NEWPID) < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            pid = fork()
        finally:
            if pid and own_pidfd >= 0 and _libc.setns(own_pidfd, _CLONE_NEWPID) < 0:
                os._exit(_EXIT_PROTOCOL)  # the zygote can't return to its own namespace
        if pid == 0:
            _join_groups(fds[_ENDS:])
            syscalls.run(words, *fds[:_ENDS], uid)
            return 0
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        sock.send(_HEAD.pack(b"e", number) + f"fork: {error.strerror}".encode())
        return -1
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


def _plain_fork() -> int:
    """Forks without Python's hooks."""
    pid = _libc.fork()
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid
