"""Batches of system calls. They have the same results with and without the extension."""

import ctypes
import errno
import importlib.util
import os
import sys
import types

import pytest
import syscalls


@pytest.fixture(params=["extension", "python"])
def implementation(request, monkeypatch):
    """Runs the batches of a test with one implementation."""
    monkeypatch.setattr(
        syscalls,
        "run",
        request.getfixturevalue("extension").run if request.param == "extension" else syscalls.run_in_python,
    )


def test_results_are_arguments_of_later_calls(implementation, tmp_path):
    free = max(map(int, os.listdir("/proc/self/fd"))) + 10  # other tests of this process may hold hundreds
    made = syscalls.Batch()
    fd = made.call(
        "open", "openat", -100, str(tmp_path / "file").encode(), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600
    )
    copy = made.call("dup", "dup3", fd, free, os.O_CLOEXEC)
    made.call("close", "close", fd)
    made.run()
    assert made.result(copy) == free
    assert os.path.samestat(os.fstat(free), os.stat(tmp_path / "file"))
    with pytest.raises(OSError):
        os.fstat(made.result(fd))
    os.close(free)


def test_no_call_is_made_after_a_failure(implementation, tmp_path):
    made = syscalls.Batch()
    for name, path in (("make", "one"), ("below nothing", "no/two"), ("make", "three")):
        made.call(name, "openat", -100, str(tmp_path / path).encode(), os.O_CREAT | os.O_CLOEXEC, 0o700)
    with pytest.raises(OSError, match="below nothing: No such file") as raised:
        made.run()
    assert raised.value.errno == errno.ENOENT
    assert made.failed() == 1
    assert sorted(os.listdir(tmp_path)) == ["one"]


def test_expect_fails_on_a_different_result(implementation):
    made = syscalls.Batch()
    parent = made.call("getppid", "getppid")
    made.expect("the parent", parent, os.getppid(), errno.ESRCH)
    made.run()
    made.expect("another parent", parent, os.getppid() + 1, errno.ESRCH)
    with pytest.raises(ProcessLookupError, match="another parent"):
        made.run()


def test_given_numbers_and_stores(implementation, tmp_path):
    made = syscalls.Batch()
    number, buffer = syscalls.given(3), ctypes.create_string_buffer(8)
    opened = made.call("open", "openat", -100, str(tmp_path).encode(), os.O_RDONLY | os.O_CLOEXEC)
    made.store(buffer, 4, opened)
    made.call("close", "close", number)
    for want in (950, 951):
        os.dup2(0, want)
        made.run(-1, -1, -1, want)
        with pytest.raises(OSError):
            os.fstat(want)
        fd = int.from_bytes(buffer.raw[4:], sys.byteorder)
        assert fd == made.result(opened) and buffer.raw[:4] == bytes(4)
        os.close(fd)


def test_run_rejects_memory_that_is_not_a_batch(extension):
    for wrong in (bytearray(7), bytearray(88), bytearray(96)):
        with pytest.raises(ValueError, match="not a batch"):
            extension.run(wrong)
    with pytest.raises(BufferError):
        extension.run(bytes(80))


def test_an_extension_of_another_version_is_not_used(extension, monkeypatch):
    assert extension.ABI_VERSION == syscalls.ABI_VERSION
    for version, used in ((syscalls.ABI_VERSION, True), (syscalls.ABI_VERSION - 1, False), (None, False)):
        monkeypatch.setitem(
            sys.modules,
            "syscall_batch",
            types.SimpleNamespace(run=len, **({} if version is None else {"ABI_VERSION": version})),
        )
        spec = importlib.util.spec_from_file_location("another_batch", syscalls.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert (module.syscall_batch is not None) == used and (module.run is len) == used
