"""What threads print after their run, while a later run is streamed."""

import threading

import late_output
import protocol
import pytest


@pytest.fixture
def late(run, tmp_path):
    """A thread's print function that writes to a file, as a thread that an earlier run began."""
    go, done, jobs = threading.Semaphore(0), threading.Semaphore(0), []

    def work():
        while go.acquire() and jobs[-1] is not None:
            jobs[-1]()
            done.release()

    thread = threading.Thread(target=work)
    thread.start()

    def in_thread(job):
        jobs.append(job)
        go.release()
        assert done.acquire(timeout=30)

    yield in_thread
    jobs.append(None)
    go.release()
    thread.join()


@pytest.fixture
def output(run, tmp_path):
    with late_output.Output(str(tmp_path / "out"), "w") as file:
        yield file


class Stream:
    def __init__(self, file):
        self.buffer = file


def _begin(lates, channel, execution, file, ordered=True):
    channel.begin_run(ordered)
    lates.begin_run(execution, (Stream(file), None))


def _end(lates, channel, file):
    lates.end_run((Stream(file), None))
    channel.end_run()


def _sent(channel):
    return [(e["execution_id"], e["stream"], e["text"]) for kind, e in channel.told if kind == protocol.LATE]


def test_text_of_an_earlier_run(run, late, output, tmp_path):
    channel, lates = run.channel, late_output.LateOutput(run.channel)
    _begin(lates, channel, "one", output)
    late(lambda: output.write(b"in time\n"))
    _end(lates, channel, output)
    _begin(lates, channel, "two", output)
    late(lambda: output.write("é\n".encode()))
    output.write(b"own\n")
    late(lambda: output.write(b"x" * 250_000))
    assert [(e[0], e[1], len(e[2])) for e in _sent(channel)] == [
        ("one", "stdout", 2), ("one", "stdout", 100_000), ("one", "stdout", 100_000), ("one", "stdout", 50_000),
    ]  # fmt: skip
    assert (tmp_path / "out").read_bytes() == b"in time\nown\n"
    channel.told.clear()
    late(lambda: output.write(("x" + "é" * 100_000).encode()))
    assert "".join(e[2] for e in _sent(channel)) == "x" + "é" * 100_000
    late(lambda: output.write(b"\x80" * 300_000))
    _end(lates, channel, output)
    channel.told.clear()
    late(lambda: output.write(b"between"))
    assert not _sent(channel) and b"between" not in (tmp_path / "out").read_bytes()
    _begin(lates, channel, "three", output)
    assert _sent(channel) == [("one", "stdout", "between")]


def test_text_is_plain_in_a_run_that_is_not_streamed(run, late, output, tmp_path):
    channel, lates = run.channel, late_output.LateOutput(run.channel)
    _begin(lates, channel, "one", output, False)
    _end(lates, channel, output)
    _begin(lates, channel, "two", output, False)
    late(lambda: output.write(b"plain"))
    _end(lates, channel, output)
    late(lambda: output.write(b" text"))
    assert not _sent(channel) and (tmp_path / "out").read_bytes() == b"plain text"


def test_held_text_is_bounded_and_printed_by_the_next_run(run, late, output, tmp_path):
    channel, lates = run.channel, late_output.LateOutput(run.channel)
    _begin(lates, channel, "one", output)
    _end(lates, channel, output)
    late(lambda: [output.write(b"y" * 90_000) for _ in range(20)])
    _begin(lates, channel, "three", output, False)
    assert len((tmp_path / "out").read_bytes()) == 11 * 90_000


def test_without_threads_nothing_is_replaced(run, output):
    lates = late_output.LateOutput(run.channel)
    before = threading.enumerate
    assert len([thread for thread in before() if thread is not threading.main_thread()]) == 0
    _begin(lates, run.channel, "one", output)
    _end(lates, run.channel, output)
    assert "write" not in vars(output)
