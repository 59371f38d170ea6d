"""The guest's end of the protocol. Package sandbox/protocol is the supervisor's end and specifies the frames.

A frame is the length of its body (4 bytes, big endian), a kind (1 byte) and the body.
"""

import json
import json.encoder
import marshal
import mmap
import os
import re
import select
import socket
import struct
import threading
import typing
from collections.abc import Callable, Iterable

import recorder_ring

ENTER, READY, ASSIGN, RUN, DONE, REQUEST, ANSWER, COLUMNS, ROWS = (ord(kind) for kind in "ERPXDAJHM")
NOTE, OUTPUT, SYNC, RECORDS, INSPECT, VALUE, STOP, COMMAND, LOG = (ord(kind) for kind in "NOYTLVSCG")
COPIES, LATE = ord("U"), ord("B")

# Bound at import: user code may replace the functions of the modules later.
_unmarshal, _pack_head, _unpack_head = marshal.loads, struct.Struct(">IB").pack, struct.Struct(">IB").unpack_from


_DESCRIPTOR_SPACE = socket.CMSG_SPACE(3 * 4)  # three descriptors at a time
_SMALL_READ = 1 << 13  # bytes; frames between runs are seldom larger, and malloc has a block of this size
# Notes of a run that wait for the supervisor, which takes milliseconds on a busy machine. There are fewer outputs.
MAX_ORDERED_NOTES = 100
_LARGE_FRAME = 1 << 16  # bytes of a frame that is read into its final place
UNINTERRUPTIBLE_FILES: set[str] = set()  # files whose functions an interrupt must not cut short
_USER_CODE = "<execution "  # the start of the file names of user code


class Refused(Exception):
    """Raised if the supervisor refuses a request. detail is a sandbox.Refusal."""

    def __init__(self, detail: dict):
        super().__init__(detail.get("message", "refused"))
        self.detail = detail


def _encoder() -> "Callable[[object, int], Iterable[str]]":
    """Returns the encoder that json.dumps makes for each call."""
    of, plain = json.encoder, json.JSONEncoder()
    if of.c_make_encoder is None:  # type: ignore[attr-defined]
        return lambda value, _: plain.iterencode(value)
    return of.c_make_encoder(None, plain.default, of.encode_basestring_ascii, None, ": ", ", ", False, False, True)  # type: ignore[attr-defined]


_encode_parts, _decode_text = _encoder(), json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def decode(body: "bytes | bytearray") -> typing.Any:
    """Decodes the JSON of a frame, in half the time of json.loads, because it expects no surrounding whitespace."""
    return _decode_text(body.decode(), 0)[0]


# An escape in JSON: of a whole surrogate pair, of a lone surrogate (group 1), or another.
_replace_escapes = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f]..)|.)").sub


def _visible(escape: "re.Match") -> str:
    """Returns an escape, or the text of the escape of a lone surrogate."""
    return escape[0] if escape[1] is None else "\\" + escape[0]


def encode(value: object) -> bytes:
    """Encodes the body of a frame. A lone surrogate, which is not a character, becomes the text of its escape: the
    supervisor ends a guest whose JSON has one."""
    text = "".join(_encode_parts(value, 0))
    if "\\ud" in text:
        text = _replace_escapes(_visible, text)
    return text.encode("ascii")


def encode_frame(kind: int, body: bytes) -> bytes:
    return _pack_head(len(body), kind) + body


class Channel:
    """The guest's connection to the supervisor. The zygote makes it; its descriptor is open in each guest only."""

    def __init__(self, fd: int):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._buffer = bytearray()
        self._descriptors: list[int] = []  # received and not taken yet
        self._lock = threading.RLock()
        self._last_request = 0
        self._is_requesting = False
        self._main = threading.get_ident()
        self._holds_interrupts = False  # the main thread is in the middle of a frame
        self.interrupted = False  # an interrupt is delayed
        self.attention = False  # the supervisor asks the program to stop at its next line
        self.running = False  # user code runs, so an interrupt may be raised
        self._is_ordered = False  # what the program prints after a note or an output must arrive after it
        self._ordered_notes_left = 0
        self._takes_late = False

    def on_interrupt(self, _signal=None, frame=None) -> None:
        """Handles SIGINT: ends user code, but never in the middle of a frame or of a hook."""
        if not self.running:
            return
        while frame is not None and not frame.f_code.co_filename.startswith(_USER_CODE):
            if frame.f_code.co_filename in UNINTERRUPTIBLE_FILES:
                self.interrupted = True
                return
            frame = frame.f_back
        if self._holds_interrupts:
            self.interrupted = True
            return
        raise KeyboardInterrupt

    def on_attention(self, *_) -> None:
        """Handles SIGUSR1: the program stops at its next line, or at its first."""
        self.attention = True

    @property
    def request_lock(self):
        """The lock that a thread holds while it waits for an answer of the supervisor."""
        return self._lock

    def take_interrupt(self) -> bool:
        """Tells whether this thread must now raise an interrupt that was delayed."""
        if not self.interrupted or self._holds_interrupts or threading.get_ident() != self._main:
            return False
        self.interrupted = False
        return True

    def close(self) -> None:
        self._socket.close()

    # -- frames

    def wait(self, milliseconds: int) -> bool:
        """Tells whether a frame has arrived or arrives within this time."""
        return bool(self._buffer or self._poll.poll(milliseconds))

    def send(self, kind: int, value: object) -> None:
        frame = encode_frame(kind, value if type(value) is bytes else encode(value))
        with self._lock:
            self._socket.sendall(frame)

    def receive(self, read: "Callable[[], bytes] | None" = None) -> "tuple[int, bytes | bytearray]":
        """Returns the kind and the body of the next frame. read() takes bytes from the socket."""
        while True:
            if len(self._buffer) >= 5:
                size, kind = _unpack_head(self._buffer)
                if len(self._buffer) >= 5 + size:
                    body = bytes(memoryview(self._buffer)[5 : 5 + size])
                    del self._buffer[: 5 + size]
                    return kind, body
                if size > _LARGE_FRAME:
                    return kind, self._receive_large(size)
            data = read() if read else self._socket.recv(1 << 18)
            if not data:
                raise EOFError("the supervisor closed the connection")
            self._buffer += data

    def _receive_large(self, size: int) -> bytearray:
        """Reads the body of a frame that begins in the buffer, without a copy of the body."""
        have = len(self._buffer) - 5
        try:
            body = bytearray(size)
        except MemoryError:
            self._buffer = bytearray()
            while have < size:
                have += len(self._socket.recv(min(size - have, _LARGE_FRAME))) or size
            raise
        body[:have] = memoryview(self._buffer)[5:]
        self._buffer = bytearray()
        with memoryview(body) as view:
            while have < size:
                more = self._socket.recv_into(view[have:])
                if not more:
                    raise EOFError("the supervisor closed the connection")
                have += more
        return body

    def receive_with_descriptors(self) -> "tuple[int, bytes | bytearray]":
        """Returns the next frame between runs. take_descriptors() has the descriptors that came with it or earlier."""
        return self.receive(self._read_with_descriptors)

    def _read_with_descriptors(self) -> bytes:
        data, sent, _, _ = self._socket.recvmsg(_SMALL_READ, _DESCRIPTOR_SPACE)
        for _, _, rights in sent:
            self._descriptors += struct.unpack(f"{len(rights) // 4}i", rights)
        return data

    def take_descriptors(self) -> "list[int]":
        taken, self._descriptors = self._descriptors, []
        return taken

    # -- requests of running code

    def query(self, database: str, sql: str, params: dict, types: dict, result) -> bool:
        """Runs a statement on the database with a name, or on the default one if it is "", and returns whether its rows
        were truncated.

        The columns go to result.begin, and the rows in batches to result.take(count, columns) as they arrive, in the
        form that result.form names; if result.exact is set, numeric values are texts there, too. If this raises
        Refused, the rows so far are void.
        """
        request = {"what": "query", "database": database, "sql": sql, "params": params, "types": types}
        return self._request({**request, "form": result.form, "exact": result.exact}, result)

    def stages(self, database: str, sql: str, params: dict, types: dict) -> dict:
        """Runs a statement, and returns the rows after each of its stages."""
        request = {"what": "stages", "database": database, "sql": sql, "params": params, "types": types}
        return self._request(request)

    def tables(self, database: str) -> "list[str]":
        return self._request({"what": "tables", "database": database})

    def schema(self, database: str, table: str) -> dict:
        return self._request({"what": "schema", "database": database, "table": table})

    def history(self) -> "list[dict]":
        return self._request({"what": "history"})

    def begin_run(self, is_ordered: bool) -> None:
        self.interrupted = False
        if not is_ordered and not self._is_ordered:
            return  # nothing changes
        with self._lock:  # a thread that prints late asks what holds, and acts on the answer
            self._is_ordered, self._ordered_notes_left = is_ordered, MAX_ORDERED_NOTES
            self._takes_late = is_ordered

    def end_run(self) -> None:
        """Ends the frames of late(): after the end of a run nobody reads them."""
        if self._takes_late:
            with self._lock:
                self._takes_late = False

    @property
    def holds_late(self) -> bool:
        """Tells whether an ordered run has ended, and no other has begun."""
        return self._is_ordered and not self._takes_late

    def late(self, execution: str, stream: str, text: str) -> bool:
        """Sends text that a thread of an earlier execution has printed. Returns False if the run takes none."""
        with self._lock:
            if self._takes_late:
                self.send(LATE, {"execution_id": execution, "stream": stream, "text": text})
            return self._takes_late

    def note(self, note: dict) -> None:
        self._without_interrupts(self._send_in_order, NOTE, note)

    def output(self, output: dict) -> None:
        send = self.send if output["role"] == "result" else self._send_in_order  # nothing is printed after the result
        self._without_interrupts(send, OUTPUT, output)

    def log(self, entry: dict) -> None:
        self._without_interrupts(self._send_in_order, LOG, entry)

    def _send_in_order(self, kind: int, value: object) -> None:
        """Sends a frame. If the output of this run is ordered, waits until the supervisor has handled it: text that is
        printed takes another way, on which it would arrive earlier. Threads have no order between them."""
        with self._lock:
            self.send(kind, value)
            if not self._is_ordered or self._is_requesting or threading.get_ident() != self._main:
                return
            if kind != OUTPUT:
                if self._ordered_notes_left <= 0:
                    return
                self._ordered_notes_left -= 1
            self._is_requesting = True
            try:
                self.send(SYNC, b"")
                while self.receive()[0] != SYNC:
                    pass
            finally:
                self._is_requesting = False

    def open_ring(self) -> recorder_ring.Ring:
        """Returns the ring of this run's recorder. The descriptor of its memory came with the Run frame."""
        (fd,) = self.take_descriptors()
        try:
            memory = mmap.mmap(fd, recorder_ring.HEAD_BYTES + recorder_ring.RING_BYTES)
            return recorder_ring.Ring(memory, self._wait_until_emptied)
        finally:
            os.close(fd)

    def _wait_until_emptied(self) -> None:
        """Makes the supervisor empty the ring, and waits until it has done so."""
        with self._lock:
            self.send(RECORDS, b"")
            while self.receive()[0] != RECORDS:
                pass

    def _request(self, request: dict, result=None):
        return self._without_interrupts(self._exchange, request, result)

    def _exchange(self, request: dict, result):
        with self._lock:
            if self._is_requesting:  # a finalizer, or user code that a conversion calls
                raise RuntimeError("another request is not answered yet: finish reading its rows first")
            self._is_requesting = True
            try:
                self._last_request += 1
                request["id"] = self._last_request
                self.send(REQUEST, request)
                return self._read_answer(self._last_request, result)
            finally:
                self._is_requesting = False

    def _read_answer(self, number: int, result):
        failed: BaseException | None = None  # an error in taking rows is raised once all frames are read
        while True:
            try:
                kind, body = self.receive()
            except MemoryError as error:  # _receive_large has skipped the frame
                failed = error
                continue
            if kind != ANSWER:
                try:
                    if failed is None:
                        self._pass_on(kind, body, number, result)
                except BaseException as error:
                    failed = error
                continue
            answer = decode(body)
            if answer["id"] == number:
                if failed is not None:
                    raise failed
                if answer.get("refused"):
                    raise Refused(answer["refused"])
                return answer.get("value")

    @staticmethod
    def _pass_on(kind: int, body: "bytes | bytearray", number: int, result) -> None:
        if kind == COLUMNS:
            answer = decode(body)
            if answer["id"] == number:
                result.begin([{"of": "", "array": False, **column} for column in answer["columns"]])
        elif kind == ROWS and int.from_bytes(body[:4], "big") == number:
            result.take(*_unmarshal(memoryview(body)[4:]))

    def _without_interrupts(self, call, *args):
        """Calls call and delays interrupts until it returns."""
        if threading.get_ident() != self._main:
            return call(*args)
        before, self._holds_interrupts = self._holds_interrupts, True
        try:
            return call(*args)
        finally:
            self._holds_interrupts = before
            if self.take_interrupt():
                raise KeyboardInterrupt


class RehearsalChannel(Channel):
    """A channel that reads given frames, and discards the frames that are sent."""

    def __init__(self, frames: bytes):
        self._buffer = bytearray(frames)
        self._descriptors = []
        self._lock = threading.RLock()

    def send(self, kind: int, value: object) -> None:
        encode_frame(kind, encode(value))
