"""The zygote's loop: what the service asks for, and what it is told.

Both go over the control socket (seqpacket), in messages that begin with a kind:

    F number uid birth    with three descriptors (hatch, stdout, stderr), and those of the files by
                          which it joins its control groups: make a child, and there
                          the batch of that birth
    f number pid          with its pidfd: it is made; the pid is that of the zygote's namespace
    e number why          it is not
    x pid status time     it has ended: a wait status, and microseconds of CPU time

After each fork the zygote copies, like the child, each page that it writes to, and
memory on huge pages falls apart for all forks to come. So the extension
syscall_batch goes round in this loop without Python; where it is not built, this module
does, with the same outcome.
"""

import array
import ctypes
import os
import select
import socket
import struct
from collections.abc import Callable

import batch

_ASK, _HEAD, _FORKED, _EXITED = struct.Struct(">cIII"), struct.Struct(">cI"), struct.Struct(">cII"), struct.Struct(">cIIQ")
_ONE, _ENDS, _GROUPS = struct.Struct("i"), 3, 3  # descriptors
_NO_GROUP = 73  # a child's exit status
_CLONE_NEWPID = 0x20000000
_ROOM = socket.CMSG_SPACE((_ENDS + _GROUPS) * _ONE.size)

_libc = ctypes.PyDLL(None, use_errno=True)  # which keeps the interpreter's lock

Births = list["array.array"]  # batches


def serve(control: int, ended: int, home: int, births: Births, fork: "Callable[[], int] | None" = None) -> int:
    """Serves until there is a child, where this returns the index of its birth. When the socket
    closes, it exits.

    births are the batches that children make first; each is given the
    three descriptors and the uid. ended is a signalfd of SIGCHLD. home is a pidfd of this
    process, where children are to have pid namespaces of their own, or -1: such a namespace is good for
    one fork only, and the way back is home. fork is one that must be used."""
    if batch.syscall_batch and not fork:
        return batch.syscall_batch.serve(control, ended, home, births)
    return serve_slowly(control, ended, home, births, fork or _plain_fork)


def serve_slowly(control: int, ended: int, home: int, births: Births, fork: "Callable[[], int]") -> int:
    """What syscall_batch.serve does."""
    sock = socket.socket(fileno=control)
    try:
        poll = select.poll()
        poll.register(control, select.POLLIN)
        poll.register(ended, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if ended in ready:
                os.read(ended, 1024)
                _reap(sock)
            if control not in ready:
                continue
            message, sent, flags, _ = sock.recvmsg(_ASK.size, _ROOM)
            if len(message) != _ASK.size or not sent:
                os._exit(0)
            if flags & socket.MSG_CTRUNC:  # not all came: the child would be outside its groups
                os._exit(70)
            _, number, uid, at = _ASK.unpack(message)
            if at >= len(births):
                os._exit(70)
            ends = [end for (end,) in _ONE.iter_unpack(sent[0][2])]
            if _make(sock, number, births[at], (*ends[:_ENDS], uid), home, fork, ends[_ENDS:]) == 0:
                return at
            for end in ends:
                os.close(end)
    finally:
        sock.detach()


def _make(
    sock: socket.socket, number: int, words: "array.array", given: "tuple[int, ...]", home: int, fork: "Callable[[], int]", groups: list[int]
) -> int:
    pid = -1
    try:
        try:
            if home >= 0 and _libc.unshare(_CLONE_NEWPID) < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            pid = fork()
        finally:
            if pid and home >= 0 and _libc.setns(home, _CLONE_NEWPID) < 0:
                os._exit(70)  # there is no way back
        if pid == 0:
            _join(groups)
            batch.run(words, *given)
            return 0
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        sock.send(_HEAD.pack(b"e", number) + f"fork: {error.strerror}".encode())
        return -1
    sock.sendmsg([_FORKED.pack(b"f", number, pid)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _ONE.pack(pidfd))])
    os.close(pidfd)
    return pid


def _join(groups: list[int]) -> None:
    """Joins control groups: 0 is whoever writes it, and moves one thread without holding up every
    fork and exit of the machine, as the number of a process does."""
    try:
        for group in groups:
            os.write(group, b"0")
            os.close(group)
    except OSError:
        os._exit(_NO_GROUP)


def _reap(sock: socket.socket) -> None:
    while True:
        try:
            pid, status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        sock.send(_EXITED.pack(b"x", pid, status, round((used.ru_utime + used.ru_stime) * 1e6)))


def _plain_fork() -> int:
    """A fork without Python's own hooks."""
    pid = _libc.fork()
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid
