"""Batches of system calls, by the extension and without it: the outcome is the same."""

import ctypes
import errno
import importlib.util
import os
import pathlib
import subprocess
import sys
import sysconfig

import batch
import pytest

EXT = pathlib.Path(__file__).parent.parent / "ext"


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    target = tmp_path_factory.mktemp("ext") / f"syscall_batch{sysconfig.get_config_var('EXT_SUFFIX')}"
    cc = [os.environ.get("CC", "gcc"), "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-I" + sysconfig.get_paths()["include"]]
    subprocess.run([*cc, str(EXT / "syscall_batch.c"), "-o", str(target)], check=True, timeout=120)
    spec = importlib.util.spec_from_file_location("syscall_batch", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["extension", "python", "hooks"])
def way(request, monkeypatch):
    """How batches are made; True where Python's hooks for a fork run."""
    if request.param == "extension":
        module = request.getfixturevalue("extension")
        monkeypatch.setattr(batch, "_run", module.run)
        monkeypatch.setattr(batch, "_fork", module.fork)
    else:
        monkeypatch.setattr(batch, "_run", batch.run_slowly)
        monkeypatch.setattr(batch, "_fork", lambda words, home: batch.fork_slowly(words, home, batch._plain_fork))
    return request.param == "hooks"


def test_results_are_arguments_of_later_calls(way, tmp_path):
    made = batch.Batch()
    fd = made.call("open", "openat", -100, str(tmp_path / "file").encode(), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    copy = made.call("dup", "dup3", fd, 900, os.O_CLOEXEC)
    made.call("close", "close", fd)
    made.run()
    assert made.result(copy) == 900
    assert os.path.samestat(os.fstat(900), os.stat(tmp_path / "file"))
    with pytest.raises(OSError):
        os.fstat(made.result(fd))
    os.close(900)


def test_nothing_is_done_after_a_failure(way, tmp_path):
    made = batch.Batch()
    made.call("mkdir", "mkdirat", -100, str(tmp_path / "one").encode(), 0o700)
    made.call("again", "mkdirat", -100, str(tmp_path / "one").encode(), 0o700, tolerate=errno.EEXIST)
    made.call("below nothing", "mkdirat", -100, str(tmp_path / "no/two").encode(), 0o700, tolerate=errno.EEXIST)
    made.call("mkdir", "mkdirat", -100, str(tmp_path / "three").encode(), 0o700)
    with pytest.raises(OSError, match="below nothing: No such file") as raised:
        made.run()
    assert raised.value.errno == errno.ENOENT
    assert made.failed() == 2
    assert sorted(os.listdir(tmp_path)) == ["one"]


def test_what_is_expected_is_compared(way):
    made = batch.Batch()
    parent = made.call("getppid", "getppid")
    made.expect("the parent", parent, os.getppid(), errno.ESRCH)
    made.run()
    made.expect("another parent", parent, os.getppid() + 1, errno.ESRCH)
    with pytest.raises(ProcessLookupError, match="another parent"):
        made.run()


def test_slots_and_stores(way, tmp_path):
    made = batch.Batch()
    number, buffer = batch.Slot(made), ctypes.create_string_buffer(8)
    opened = made.call("open", "openat", -100, str(tmp_path).encode(), os.O_RDONLY | os.O_CLOEXEC)
    made.store(buffer, 4, opened)
    made.call("make", "mkdirat", -100, number.text(), 0o700)
    made.call("close", "close", number)
    os.chdir(tmp_path)
    for want in (950, 951):
        os.dup2(0, want)
        number.set(want)
        made.run()
        assert os.path.isdir(tmp_path / str(want))
        with pytest.raises(OSError):
            os.fstat(want)
        fd = int.from_bytes(buffer.raw[4:], sys.byteorder)
        assert fd == made.result(opened) and buffer.raw[:4] == bytes(4)
        os.close(fd)


def test_the_child_makes_the_calls(way):
    out, into = os.pipe()
    made = batch.Batch()
    made.call("descriptors", "dup3", into, 900, 0)
    made.call("close", "close", 901)
    pid = made.fork(-1, way)
    if pid == 0:
        try:
            made.check()
        except OSError as error:
            os.write(900, f"{made.failed()} {error.errno}".encode())
        os._exit(7)
    os.close(into)
    assert os.read(out, 100) == f"1 {errno.EBADF}".encode()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    os.close(out)
    assert made.failed() == -1  # here none was made
    with pytest.raises(OSError):
        os.fstat(900)


def test_a_pid_namespace_of_its_own(way):
    home = os.pidfd_open(os.getpid())
    if os.geteuid() != 0:  # only root makes one without a user namespace
        with pytest.raises(PermissionError):
            batch.Batch().fork(home, way)
        return
    for _ in range(2):  # and there is a way back
        pid = batch.Batch().fork(home, way)
        if pid == 0:
            os._exit(os.getpid())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    pid = os.fork()
    if pid == 0:
        os._exit(1 if os.getpid() == 1 else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(home)


def test_only_a_batch_is_one(extension):
    for wrong in (bytearray(7), bytearray(80), bytearray(96)):
        with pytest.raises(ValueError, match="not a batch"):
            extension.run(wrong)
    with pytest.raises(BufferError):
        extension.run(bytes(88))
