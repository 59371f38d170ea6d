"""The child's end of the hatch; the other is package hatch in Go, which says what
goes which way. A frame is a length (4 bytes, big endian), a kind and a body."""

import json
import json.encoder
import marshal
import mmap
import os
import select
import socket
import struct
import threading
import typing
from collections.abc import Callable, Iterable

import recorder_ring

ENTER, READY, ASSIGN, RUN, DONE, ASK, ANSWER, COLUMNS, ROWS, NOTE, OUTPUT, RECORDS, LOOK, VALUE, STOP, COMMAND, LOG = (
    ord(c) for c in "ERPXDAJHMNOTLVSCG"
)

# Bound at import: user code may replace the modules' functions later.
_unmarshal, _pack, _unpack = marshal.loads, struct.Struct(">IB").pack, struct.Struct(">IB").unpack_from


_ROOM = socket.CMSG_SPACE(2 * 4)  # two descriptors at a time
_SMALL = 1 << 13  # bytes that a frame between runs hardly exceeds, and malloc has at hand
_LARGE = 1 << 16  # bytes of a frame that is read in place
HOOKS: set[str] = set()  # files whose functions an interrupt must not cut short
_CODE = "<execution "  # how the files of user code begin


class Refused(Exception):
    """The host's no to a question: detail is a sandbox.Refusal."""

    def __init__(self, detail: dict):
        super().__init__(detail.get("message", "refused"))
        self.detail = detail


def _encoder() -> "Callable[[object, int], Iterable[str]]":
    """What json.dumps makes anew each time, by way of two more functions."""
    of, plain = json.encoder, json.JSONEncoder()
    if of.c_make_encoder is None:  # type: ignore[attr-defined]
        return lambda value, _: plain.iterencode(value)
    return of.c_make_encoder(None, plain.default, of.encode_basestring_ascii, None, ": ", ", ", False, False, True)  # type: ignore[attr-defined]


_encode, _decode = _encoder(), json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def loads(body: "bytes | bytearray") -> typing.Any:
    """A frame's JSON, which the host sends with nothing around it: json.loads does as much
    again to see to that."""
    return _decode(body.decode(), 0)[0]


def pack(value: object) -> bytes:
    """A frame's body."""
    return "".join(_encode(value, 0)).encode("ascii")


def frame(kind: int, body: bytes) -> bytes:
    return _pack(len(body), kind) + body


class Channel:
    """Made in the zygote; the descriptor is the hatch in each child, and in none else."""

    def __init__(self, fd: int):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._buffer = bytearray()
        self._descriptors: list[int] = []  # that came and were not taken
        self._lock = threading.RLock()
        self._next = 0
        self._asking = False
        self._main = threading.get_ident()
        self._guarded = False  # the main thread is in the middle of a frame
        self.interrupted = False  # one is held back
        self.attention = False  # the host asks a program that runs to stop
        self.running = False  # user code runs: an interrupt may be raised

    def on_interrupt(self, _signal=None, frame=None) -> None:
        """SIGINT: ends user code, but never in the middle of a frame or of a hook."""
        if not self.running:
            return
        while frame is not None and not frame.f_code.co_filename.startswith(_CODE):
            if frame.f_code.co_filename in HOOKS:
                self.interrupted = True
                return
            frame = frame.f_back
        if self._guarded:
            self.interrupted = True
            return
        raise KeyboardInterrupt

    def on_attention(self, *_) -> None:
        """SIGUSR1: the host wants the program to stop at its next line, or its first."""
        self.attention = True

    @property
    def turn(self):
        """Held by who waits for an answer of the host's."""
        return self._lock

    def take_interrupt(self) -> bool:
        """Whether one was held back that this thread must raise now."""
        if not self.interrupted or self._guarded or threading.get_ident() != self._main:
            return False
        self.interrupted = False
        return True

    def close(self) -> None:
        self._socket.close()

    # -- frames

    def waits(self, milliseconds: int) -> bool:
        """Whether a frame is there, or comes within this time."""
        return bool(self._buffer or self._poll.poll(milliseconds))

    def send(self, kind: int, value: object) -> None:
        body = value if type(value) is bytes else pack(value)
        whole = _pack(len(body), kind) + body
        with self._lock:
            self._socket.sendall(whole)

    def receive(self, more: "Callable[[], bytes] | None" = None) -> "tuple[int, bytes | bytearray]":
        """The next frame; more is what takes bytes from the socket."""
        while True:
            if len(self._buffer) >= 5:
                size, kind = _unpack(self._buffer)
                if len(self._buffer) >= 5 + size:
                    body = bytes(memoryview(self._buffer)[5 : 5 + size])
                    del self._buffer[: 5 + size]
                    return kind, body
                if size > _LARGE:
                    return kind, self._receive_large(size)
            data = more() if more else self._socket.recv(1 << 18)
            if not data:
                raise EOFError("the host closed the hatch")
            self._buffer += data

    def _receive_large(self, size: int) -> bytearray:
        """The body of a frame whose begin is in the buffer, with no copy of it made."""
        have = len(self._buffer) - 5
        try:
            body = bytearray(size)
        except MemoryError:
            self._buffer = bytearray()
            while have < size:
                have += len(self._socket.recv(min(size - have, _LARGE))) or size
            raise
        body[:have] = memoryview(self._buffer)[5:]
        self._buffer = bytearray()
        with memoryview(body) as view:
            while have < size:
                more = self._socket.recv_into(view[have:])
                if not more:
                    raise EOFError("the host closed the hatch")
                have += more
        return body

    def receive_with_descriptors(self) -> "tuple[int, bytes | bytearray]":
        """The next frame between runs; take_descriptors has what came with it, or already with
        the one before."""
        return self.receive(self._bytes_with_descriptors)

    def _bytes_with_descriptors(self) -> bytes:
        data, sent, _, _ = self._socket.recvmsg(_SMALL, _ROOM)
        for _, _, rights in sent:
            self._descriptors += struct.unpack(f"{len(rights) // 4}i", rights)
        return data

    def take_descriptors(self) -> "list[int]":
        taken, self._descriptors = self._descriptors, []
        return taken

    # -- questions of running code

    def query(self, sql: str, params: dict, types: dict, result) -> bool:
        """Gives a statement's columns to result.begin, and its rows part by part to
        result.take(count, columns) while they come, in the form that result.form names.
        Whether they were truncated. Where it raises Refused, what came before is void."""
        return self._ask({"what": "query", "sql": sql, "params": params, "types": types, "form": result.form}, result)

    def tables(self) -> "list[str]":
        return self._ask({"what": "tables"})

    def schema(self, table: str) -> dict:
        return self._ask({"what": "schema", "table": table})

    def history(self) -> "list[dict]":
        return self._ask({"what": "history"})

    def note(self, note: dict) -> None:
        self._guard(self.send, NOTE, note)

    def output(self, output: dict) -> None:
        self._guard(self.send, OUTPUT, output)

    def ring(self) -> recorder_ring.Ring:
        """What the recorder of this run writes to; its memory came with the frame."""
        (fd,) = self.take_descriptors()
        try:
            return recorder_ring.Ring(mmap.mmap(fd, recorder_ring.HEAD + recorder_ring.SIZE), self._emptied)
        finally:
            os.close(fd)

    def _emptied(self) -> None:
        """Has the host empty the ring."""
        with self._lock:
            self.send(RECORDS, b"")
            while self.receive()[0] != RECORDS:
                pass

    def _ask(self, question: dict, result=None):
        return self._guard(self._exchange, question, result)

    def _exchange(self, question: dict, result):
        with self._lock:
            if self._asking:  # a finalizer, or what user code has put in the way of a conversion
                raise RuntimeError("the answer to another question is being read")
            self._asking = True
            try:
                self._next += 1
                question["id"] = self._next
                self.send(ASK, question)
                return self._answer(self._next, result)
            finally:
                self._asking = False

    def _answer(self, number: int, result):
        failed: BaseException | None = None  # in taking rows: the host is heard out first
        while True:
            try:
                kind, body = self.receive()
            except MemoryError as error:  # the frame was skipped
                failed = error
                continue
            if kind != ANSWER:
                try:
                    if failed is None:
                        self._hand(kind, body, number, result)
                except BaseException as error:
                    failed = error
                continue
            answer = loads(body)
            if answer["id"] == number:
                if failed is not None:
                    raise failed
                if answer.get("refused"):
                    raise Refused(answer["refused"])
                return answer.get("value")

    @staticmethod
    def _hand(kind: int, body: "bytes | bytearray", number: int, result) -> None:
        if kind == COLUMNS:
            answer = loads(body)
            if answer["id"] == number:
                result.begin([{"of": "", "array": False, **column} for column in answer["columns"]])
        elif kind == ROWS and int.from_bytes(body[:4], "big") == number:
            result.take(*_unmarshal(memoryview(body)[4:]))

    def _guard(self, call, *args):
        """Runs call with interrupts held back until it is over."""
        if threading.get_ident() != self._main:
            return call(*args)
        before, self._guarded = self._guarded, True
        try:
            return call(*args)
        finally:
            self._guarded = before
            if self.take_interrupt():
                raise KeyboardInterrupt


class Unheard(Channel):
    """Frames that nobody sent, and whose answers go nowhere: for a rehearsal."""

    def __init__(self, frames: bytes):
        self._buffer = bytearray(frames)
        self._descriptors = []

    def send(self, kind: int, value: object) -> None:
        frame(kind, pack(value))
