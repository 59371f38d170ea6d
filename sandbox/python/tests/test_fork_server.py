"""The loop of the zygote. It has the same results with and without the extension."""

import contextlib
import ctypes
import os
import select
import signal
import socket
import struct
import sys
import threading

import fork_server
import pytest
import syscalls
import zygote

EXIT = struct.Struct(">IIQ")
CLONE_SIGHAND, CLONE_NEWUSER, CLONE_NEWPID = 0x800, 0x10000000, 0x20000000


@pytest.fixture(params=["extension", "python", "python with hooks"])
def serving(request, monkeypatch):
    """Starts a process that serves a list of batches, each in these namespaces, and calls live(index) in each child.
    Yields its control socket."""
    has_hooks = request.param == "python with hooks"
    if request.param == "extension":
        monkeypatch.setattr(syscalls, "syscall_batch", request.getfixturevalue("extension"))
    else:
        monkeypatch.setattr(syscalls, "syscall_batch", None)
        monkeypatch.setattr(syscalls, "run", syscalls.run_in_python)

    @contextlib.contextmanager
    def start(batches, live, namespaces=0, status=0):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                signal_fd = zygote.child_signals()
                births = [(namespaces, words) for words in batches]
                live(fork_server.serve(theirs.fileno(), signal_fd, births, has_hooks))
            finally:
                os._exit(99)
        theirs.close()
        ours.settimeout(20)
        with ours:
            assert ours.recv(100) == b"ready"
            yield ours
            ours.close()
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status, (
                "the zygote must exit when its socket closes"
            )

    return start


def request(control, number, index=0, uid=0, groups=()):
    """Requests a child in control groups and returns our ends of its three descriptors."""
    pairs = [socket.socketpair() for _ in range(3)]
    socket.send_fds(
        control, [struct.pack(">cIII", b"F", number, uid, index)], [*(theirs.fileno() for _, theirs in pairs), *groups]
    )
    for _, theirs in pairs:
        theirs.close()
    return [ours for ours, _ in pairs]


def forked(control, number):
    """Receives the pid of a child in the namespace of the zygote, and its pidfd."""
    message, fds, _, _ = socket.recv_fds(control, 100, 1)
    assert message[:5] == struct.pack(">cI", b"f", number)
    return int.from_bytes(message[5:], "big"), fds[0]


def ended(control):
    message = control.recv(100)
    assert message[:1] == b"x" and len(message) == 17
    pid, status, time = EXIT.unpack(message[1:])
    return pid, os.waitstatus_to_exitcode(status), time


def greeting(text):
    """Returns a batch that copies its descriptors to 900, 901 and 902, and a number that it sets to its uid."""
    made = syscalls.Batch()
    for n in range(3):
        made.call("descriptors", "dup3", syscalls.given(n), 900 + n, 0)
    uid = ctypes.create_string_buffer(4)
    made.store(uid, 0, syscalls.given(3))
    made.call(text, "chdir", b"/")
    return made, uid


def test_each_child_runs_its_batch(serving):
    (one, first), (two, second) = greeting("one"), greeting("two")

    def live(n):
        for fd in (900, 901, 902):
            os.write(fd, b"%d %d" % (n, int.from_bytes((first, second)[n].raw, sys.byteorder)))
        os._exit(40 + n)

    with serving([one.words, two.words], live) as control:
        for number, (n, uid) in enumerate([(1, 7), (0, 0), (1, 65535)]):
            ends = request(control, number, n, uid)
            pid, pidfd = forked(control, number)
            for end in ends:
                assert end.recv(100) == b"%d %d" % (n, uid)
                assert end.recv(100) == b"", "the zygote has not closed its end"
            assert ended(control)[:2] == (pid, 40 + n)
            exits = select.poll()  # select takes no descriptor over 1023
            exits.register(pidfd, select.POLLIN)
            assert exits.poll(20_000)
            os.close(pidfd)


def test_failed_batch_is_reported_by_the_child(serving):
    made, _ = greeting("fails")
    made.call("below nothing", "chdir", b"/nowhere/at/all")

    def live(n):
        try:
            made.check()
        except OSError as error:
            os.write(901, str(error).encode())
        os._exit(5)

    with serving([made.words], live) as control:
        ends = request(control, 1)
        forked(control, 1)
        assert b"below nothing" in ends[1].recv(200)
        assert ended(control)[1] == 5


def test_a_child_joins_its_groups_first(serving):
    made, _ = greeting("joins")

    def live(_n):
        os.write(900, b"lives")
        os._exit(0)

    with serving([made.words], live) as control:
        pipes = [os.pipe() for _ in range(3)]
        ends = request(control, 1, groups=[theirs for _, theirs in pipes])
        forked(control, 1)
        for ours, theirs in pipes:
            os.close(theirs)
            assert os.read(ours, 10) == b"0" and os.read(ours, 10) == b"", "a copy is still open"
        assert ends[0].recv(10) == b"lives" and ended(control)[1] == 0
        ends = request(control, 2, groups=[pipes[0][0]])  # which can't be written to
        forked(control, 2)
        assert ended(control)[1] == 73 and ends[0].recv(10) == b"", "the child runs outside its group"
        for ours, _ in pipes:
            os.close(ours)


def test_request_with_too_many_descriptors_fails(serving):
    made, _ = greeting("outside its groups")

    def live(_n):
        os._exit(0)

    with serving([made.words], live, status=70) as control:
        null = os.open(os.devnull, os.O_WRONLY)
        request(control, 1, groups=[null] * 4)
        os.close(null)
        with contextlib.suppress(ConnectionResetError):
            assert control.recv(100) == b"", "the zygote has made a child"


def test_ended_children_are_reported_with_their_cpu_time(serving):
    made, _ = greeting("many")

    def live(_n):
        os.read(900, 1)  # wait for the test
        sum(range(200_000))
        os.kill(os.getpid(), signal.SIGKILL)

    with serving([made.words], live) as control:
        alive = {}
        for number in range(10):
            ends = request(control, number)
            pid, _ = forked(control, number)
            alive[pid] = ends
        for ends in alive.values():
            ends[0].send(b"x")
        for _ in range(10):
            pid, code, time = ended(control)
            assert alive.pop(pid) and code == -signal.SIGKILL and time > 0


def test_namespaces_of_its_own(serving):
    """The user namespace makes the others possible for a zygote without rights."""
    made, _ = greeting("alone")

    def live(_n):
        os.write(900, b"%d" % os.getpid())
        os._exit(0)

    with serving([made.words], live, namespaces=CLONE_NEWUSER | CLONE_NEWPID) as control:
        for number in range(2):
            ends = request(control, number)
            pid, _ = forked(control, number)
            assert ends[0].recv(100) == b"1" and pid > 1
            assert ended(control)[:2] == (pid, 0)


def test_a_refused_fork_is_an_answer(serving):
    made, _ = greeting("never")
    with serving([made.words], os._exit, namespaces=CLONE_SIGHAND) as control:  # without CLONE_VM: EINVAL
        request(control, 1)
        message = control.recv(100)
        assert message[:5] == struct.pack(">cI", b"e", 1) and b"fork: " in message


def test_a_child_knows_its_id(serving):
    """The C library keeps the id of a thread, with which it locks."""
    made, _ = greeting("lock")

    def live(_n):
        thread = threading.Thread(target=os.write, args=(900, b"made a thread"))
        thread.start()
        thread.join()
        own = ctypes.c_int.from_address(syscalls.own_id).value if syscalls.own_id else os.getpid()
        os.write(901, b"%d" % (own - os.getpid()))
        os._exit(0)

    with serving([made.words], live) as control:
        ends = request(control, 1)
        forked(control, 1)
        assert ends[0].recv(100) == b"made a thread" and ends[1].recv(100) == b"0"


def test_serve_rejects_memory_that_is_not_a_batch(extension):
    with pytest.raises(TypeError):
        extension.serve(-1, -1, [""], b"", False)
    with pytest.raises(ValueError, match="not a batch"):
        extension.serve(-1, -1, [(0, bytearray(96))], b"", False)


def test_unknown_batch_ends_the_zygote(serving):
    made, _ = greeting("never")
    with pytest.raises(AssertionError, match="70 == 0"), serving([made.words], os._exit) as control:
        request(control, 1, index=1)
        assert control.recv(100) == b""


def test_the_socket_may_close_when_children_end(serving):
    """The message about a child finds nobody."""
    made, _ = greeting("end")
    for _ in range(60):
        with serving([made.words], lambda _n: os._exit(0)) as control:
            request(control, 1)
            forked(control, 1)
