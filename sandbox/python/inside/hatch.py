"""The child's end of the hatch; the other is package hatch in Go, which says what
goes which way. A frame is a length (4 bytes, big endian), a kind and a body."""

import json
import marshal
import socket
import struct
import threading

ENTER, READY, ASSIGN, RUN, DONE, ASK, ANSWER, ROWS, NOTE, OUTPUT, RECORDS, LOOK, VALUE, STOP, COMMAND, LOG = (ord(c) for c in "ERPXDAJMNOTLVSCG")

# Bound at import: user code may replace the modules' functions later.
dumps, loads = json.dumps, json.loads
_unmarshal, _pack, _unpack = marshal.loads, struct.Struct(">IB").pack, struct.Struct(">IB").unpack_from


MAX_RECORDS = 1 << 19  # bytes of one frame
HOOKS: set[str] = set()  # files whose functions an interrupt must not cut short
_CODE = "<execution "  # how the files of user code begin


class Refused(Exception):
    """The host's no to a question: detail is a sandbox.Refusal."""

    def __init__(self, detail: dict):
        super().__init__(detail.get("message", "refused"))
        self.detail = detail


def pack(value: object) -> bytes:
    """A frame's body."""
    return dumps(value).encode("ascii")


def frame(kind: int, body: bytes) -> bytes:
    return _pack(len(body), kind) + body


class Channel:
    """Made in the zygote; the descriptor is the hatch in each child, and in none else."""

    def __init__(self, fd: int):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
        self._buffer = bytearray()
        self._lock = threading.RLock()
        self._next = 0
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

    # -- frames

    def send(self, kind: int, value: object) -> None:
        body = value if type(value) is bytes else dumps(value).encode("ascii")
        whole = _pack(len(body), kind) + body
        with self._lock:
            self._socket.sendall(whole)

    def receive(self) -> "tuple[int, bytes]":
        while True:
            if len(self._buffer) >= 5:
                size, kind = _unpack(self._buffer)
                if len(self._buffer) >= 5 + size:
                    body = bytes(memoryview(self._buffer)[5 : 5 + size])
                    del self._buffer[: 5 + size]
                    return kind, body
            data = self._socket.recv(1 << 18)
            if not data:
                raise EOFError("the host closed the hatch")
            self._buffer += data

    def receive_with_descriptors(self) -> "tuple[int, bytes, list[int]]":
        data, fds, _, _ = socket.recv_fds(self._socket, 1 << 18, 2)
        if not data:
            raise EOFError("the host closed the hatch")
        self._buffer += data
        kind, body = self.receive()
        return kind, body, fds

    # -- questions of running code

    def query(self, sql: str, params: dict, types: dict, packed: bool) -> "tuple[list[dict], list, bool]":
        """Rows, column by column: (columns, data, truncated). Data is lists, and where it
        is packed, for a column of numbers or times (values, nulls), as package hatch
        says. Raises Refused."""
        columns, data, truncated = self._ask({"what": "query", "sql": sql, "params": params, "types": types, "packed": packed})
        return [dict(zip(("name", "type", "kind", "of", "array"), c)) for c in columns], list(data), truncated

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

    def records(self, data: bytes) -> None:
        """What the recorder has written; called in its hooks alone."""
        for at in range(0, len(data), MAX_RECORDS):
            self.send(RECORDS, data[at : at + MAX_RECORDS])

    def _ask(self, question: dict):
        return self._guard(self._exchange, question)

    def _exchange(self, question: dict):
        with self._lock:
            self._next += 1
            number = question["id"] = self._next
            self.send(ASK, question)
            while True:
                kind, body = self.receive()
                if kind == ROWS and int.from_bytes(body[:4], "big") == number:
                    return _unmarshal(body[4:])
                if kind == ANSWER:
                    answer = loads(body)
                    if answer["id"] == number:
                        if answer.get("refused"):
                            raise Refused(answer["refused"])
                        return answer.get("value")

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
