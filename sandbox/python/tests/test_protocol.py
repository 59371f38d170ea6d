"""The guest's end of the protocol, over a real socket pair."""

import json
import marshal
import socket
import struct
import threading

import protocol
import pytest


def frame(kind, body):
    return struct.pack(">IB", len(body), kind) + body


def rows(number, count, columns):
    return frame(protocol.ROWS, number.to_bytes(4, "big") + marshal.dumps((count, columns), 2))


def answer(number, **more):
    return frame(protocol.ANSWER, json.dumps({"id": number, **more}).encode())


def columns(number):
    return frame(
        protocol.COLUMNS,
        json.dumps({"id": number, "columns": [{"name": "a", "type": "text", "kind": "string"}]}).encode(),
    )


class Result:
    form, exact = "", False

    def __init__(self, wrong=None):
        self.columns, self.parts, self.wrong = None, [], wrong

    def begin(self, columns):
        self.columns = columns

    def take(self, count, data):
        self.parts.append((count, data))
        if self.wrong:
            raise self.wrong


@pytest.fixture
def talk():
    """Returns a channel and a function that sends it frames as the supervisor."""
    ours, theirs = socket.socketpair()
    channel = protocol.Channel(ours.detach())
    threads = []

    def say(*frames, piece=1 << 20):
        def send():
            data = b"".join(frames)
            for at in range(0, len(data), piece):
                theirs.sendall(data[at : at + piece])

        threads.append(threading.Thread(target=send, daemon=True))
        threads[-1].start()

    yield channel, say
    theirs.settimeout(5)
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()  # the channel has read all frames
    theirs.close()


LARGE = "x" * 300_000


@pytest.mark.parametrize("piece", [1, 7, 4096, 1 << 20])
def test_rows_arrive_in_batches(talk, piece):
    channel, say = talk
    text = LARGE if piece > 100 else "x" * 70_000
    say(columns(1), rows(1, 1, [[text]]), rows(1, 2, [["a", "b"]]), answer(1, value=True), piece=piece)
    result = Result()
    assert channel.query("", "q", {}, {}, result) is True
    assert result.columns == [{"name": "a", "type": "text", "kind": "string", "of": "", "array": False}]
    assert result.parts == [(1, [[text]]), (2, [["a", "b"]])]


def test_frames_of_another_request_are_ignored(talk):
    channel, say = talk
    say(
        columns(7),
        rows(7, 1, [["old"]]),
        answer(7, value=True),
        columns(1),
        rows(1, 1, [["new"]]),
        answer(1, value=False),
    )
    result = Result()
    assert channel.query("", "q", {}, {}, result) is False
    assert result.parts == [(1, [["new"]])]


@pytest.mark.parametrize("wrong", [ValueError("mine"), KeyboardInterrupt(), MemoryError()])
def test_error_in_taking_rows_leaves_the_channel_usable(talk, wrong):
    channel, say = talk
    result = Result(wrong)
    say(columns(1), *(rows(1, 1, [[LARGE]]) for _ in range(5)), answer(1, value=False))
    with pytest.raises(type(wrong)):
        channel.query("", "q", {}, {}, result)
    assert len(result.parts) == 1
    say(answer(2, value=["t"]))
    assert channel.tables("") == ["t"]


def test_batch_that_does_not_fit_into_memory_is_skipped(talk, monkeypatch):
    channel, say = talk

    class Full(bytearray):
        def __new__(cls, size=0):
            if size:
                raise MemoryError
            return super().__new__(cls)

        def __init__(self, size=0):
            super().__init__()

    say(columns(1), rows(1, 1, [[LARGE]]), answer(1, value=False))
    monkeypatch.setattr(protocol, "bytearray", Full, raising=False)
    with pytest.raises(MemoryError):
        channel.query("", "q", {}, {}, Result())
    monkeypatch.undo()
    say(answer(2, value=["t"]))
    assert channel.tables("") == ["t"]


def test_a_refusal_may_come_after_rows(talk):
    channel, say = talk
    say(
        columns(1),
        rows(1, 1, [["x"]]),
        answer(1, refused={"reason": "division-by-zero", "message": "division by zero"}),
    )
    with pytest.raises(protocol.Refused, match="division by zero"):
        channel.query("", "q", {}, {}, Result())


def test_nested_request_is_refused(talk):
    channel, say = talk

    class Nested(Result):
        def take(self, count, data):
            channel.tables("")

    say(columns(1), rows(1, 1, [["x"]]), answer(1, value=False))
    with pytest.raises(RuntimeError, match="another request"):
        channel.query("", "q", {}, {}, Nested())
    say(answer(2, value=[]))
    assert channel.tables("") == []


@pytest.mark.parametrize(
    "value",
    [{}, {"error": ""}, [1, 0.5, 1e300, -2, True, None, 'é\u2028\x00"\\'], {"a": {"b": [[], {}]}}, "text", 10**30],
)
def test_encode_equals_json_dumps(value):
    assert protocol.encode(value) == json.dumps(value).encode("ascii")
    for body in (
        protocol.encode(value),
        bytearray(protocol.encode(value)),
        json.dumps(value, ensure_ascii=False).encode(),
    ):
        assert protocol.decode(body) == value


def test_encode_rejects_what_json_does_not_have():
    for value in ({1j}, {"a": object()}):
        with pytest.raises(TypeError):
            protocol.encode(value)


def test_wait_tells_whether_a_frame_is_there(talk):
    channel, say = talk
    assert not channel.wait(0)
    say(frame(protocol.RUN, b"1") + frame(protocol.INSPECT, b"2"))
    assert channel.wait(10_000)
    assert channel.receive() == (protocol.RUN, b"1")
    assert channel.wait(0), "the next frame is in the buffer"
    assert channel.receive() == (protocol.INSPECT, b"2")
    assert not channel.wait(0)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("\ud800", "\\ud800"),
        ("a\udfff\ud83d😀\ud83d", "a\\udfff\\ud83d😀\\ud83d"),
        ("\\ud800 \\\\ \\\ud800", "\\ud800 \\\\ \\\\ud800"),
        ("é\0\U0010ffff\u2028\"\\", "é\0\U0010ffff\u2028\"\\"),
    ],
)
def test_no_frame_has_a_lone_surrogate(text, sent):
    read = json.loads(protocol.encode([text, {text: text}]))
    assert read == [sent, {sent: sent}]
