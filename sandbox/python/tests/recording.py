"""Decodes a recording to lines of text, one for each record."""

import re
import struct

KINDS = (
    "head name code lane push resume suspend return unwind frame line set global delete forget "
    "object mutate free raise handled output event lost unread statement"
).split()
EXACTNESS = ("exact", "truncated", "sampled", "unread")
FORMS = ("opaque", "items", "pairs", "attributes", "table", "described", "frame")


class Reader:
    """A decoded recording: text has its records, steps its line records as (function, line), lost its gaps.

    step, frames, variables and objects are the state at the end: step counts lost steps, too; frames has [function,
    line, caller] by number; variables those of each frame, and those of the namespace under 0.
    """

    def __init__(self, data: bytes):
        self.data, self.off = bytes(data), 0
        self.names, self.codes, self.frames = [""], [None], {}
        self.statements = []
        self.current = self.pushed = self.step = 0
        self.versions, self.objects, self.variables = {}, {}, {0: {}}
        self.text, self.steps, self.lost = [], [], []
        while self.off < len(self.data):
            self.text.append(self.record())

    def stack(self) -> list:
        """Returns [function, line, variables] for each frame, innermost first, and then the namespace."""
        out, number = [], self.current
        while number:
            out.append([*self.frames[number][:2], self.shown(number)])
            number = self.frames[number][2]
        return [*out, self.shown(0)]

    def shown(self, frame: int) -> dict:
        return {name: self.contents_of(value, 0) for name, value in self.variables[frame].items()}

    def contents_of(self, value: str, depth: int) -> str:
        """Returns a value with the contents of the objects in it, and without their numbers and versions."""
        if depth > 4:
            return "..."

        def contents(found) -> str:
            _, _, text = self.objects[int(found[1])].partition(" ")
            return self.contents_of(text, depth + 1)

        return re.sub(r"@(\d+)", contents, value)

    def n(self):
        out = shift = 0
        while True:
            byte = self.data[self.off]
            self.off += 1
            out |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return out

    def z(self):
        v = self.n()
        return v >> 1 ^ -(v & 1)

    def raw(self):
        size = self.n()
        self.off += size
        assert self.off <= len(self.data)
        return self.data[self.off - size : self.off]

    def string(self):
        return self.raw().decode()

    def name(self):
        return self.names[self.n()]

    def double(self):
        self.off += 8
        return repr(struct.unpack_from("<d", self.data, self.off - 8)[0])

    def value(self):
        tag = chr(self.data[self.off])
        self.off += 1
        if tag in "NTF.":
            return {"N": "None", "T": "True", "F": "False", ".": "..."}[tag]
        if tag == "i":
            return str(self.z())
        if tag == "I":
            return str(int.from_bytes(self.raw(), "little", signed=True))
        if tag == "f":
            return self.double()
        if tag == "d":
            self.off += 1
            power = 10.0 ** self.data[self.off - 1]
            return repr(self.z() / power)
        if tag == "c":
            return f"complex({self.double()}, {self.double()})"
        if tag == "s":
            return quoted(self.raw())
        if tag == "R":
            return "raw " + quoted(self.raw())
        if tag == "S":
            return f"{self.n()} chars {quoted(self.raw())}"
        if tag in "ub":
            return tag + quoted(self.raw())
        if tag == "B":
            return f"{self.n()} bytes {quoted(self.raw())}"
        assert tag == "@", tag
        return f"@{self.n()}"

    def contents(self, number):
        version, exactness, length, form = self.n(), self.n(), self.n() - 1, self.n()
        version = self.versions[number] = version or self.versions[number] + 1
        values = [self.value() for _ in range(self.n())]
        if 1 < form < 5:
            values = [f"{k}: {v}" for k, v in zip(values[::2], values[1::2])]
        return f"v{version} {EXACTNESS[exactness]} length {length} {FORMS[form]} [{', '.join(values)}]"

    def record(self) -> str:
        byte = self.data[self.off]
        self.off += 1
        if byte >= 0x80:
            return self.take_line(byte - 0xC0)
        kind = KINDS[byte - 1]
        return f"{kind} {getattr(self, 'take_' + kind)()}".rstrip()

    def take_line(self, delta=None):
        frame = self.frames[self.current]
        frame[1] += self.z() if delta is None else delta
        self.steps.append((frame[0], frame[1]))
        self.step += 1
        return f"line {frame[1]}" if delta is not None else str(frame[1])

    def take_head(self):
        return f"{self.n()} {self.string()} {self.string()}"

    def take_name(self):
        self.names.append(self.string())
        return f"{len(self.names) - 1} {quoted(self.names[-1].encode())}"

    def take_code(self):
        file, name, first = self.name(), self.name(), self.n()
        self.codes.append((name, first))
        return f"{len(self.codes) - 1} {quoted(file.encode())} {quoted(name.encode())} line {first}"

    def take_lane(self):
        return f"{('', 'thread', 'task')[self.n()]} of {self.n()} {quoted(self.raw())}"

    def take_push(self):
        number, code, lane, parent, flags = (self.n() for _ in range(5))
        number = number or self.pushed + 1
        self.pushed = max(number, self.pushed)
        self.frames[number], self.variables[number] = [*self.codes[code], parent], {}
        line = ""
        if flags & 1:
            self.frames[number][1] = self.n()
            line = f" at {self.frames[number][1]}"
        self.current = number
        return f"{number} {quoted(self.codes[code][0].encode())} lane {lane} from {parent} flags {flags}{line}"

    def take_resume(self):
        number, parent = self.n(), self.n()
        self.current, self.frames[number][2] = number, parent
        return f"{number} from {parent}"

    def take_suspend(self):
        self.current = self.frames[self.current][2]
        return self.value()

    def take_return(self):
        self.current = self.frames[self.current][2]
        return self.value()

    def take_unwind(self):
        self.current = self.frames[self.current][2]
        return f"{self.name()} {self.value()}"

    def take_frame(self):
        self.current = self.n()
        return str(self.current)

    def take_set(self, frame=None):
        name, value = self.name(), self.value()
        self.variables[self.current if frame is None else frame][name] = value
        return f"{name} = {value}"

    def take_global(self):
        return self.take_set(0)

    def take_delete(self, frame=None):
        name = self.name()
        self.variables[self.current if frame is None else frame].pop(name, None)
        return name

    def take_forget(self):
        return self.take_delete(0)

    def take_unread(self):
        return self.name()

    def take_statement(self):
        self.statements.append(self.raw())
        return f"{len(self.statements)} {quoted(self.statements[-1])}"

    def take_object(self):
        number, kind = self.n(), self.name()
        assert number not in self.objects
        self.objects[number] = contents = self.contents(number)
        return f"{number} {kind} {contents}"

    def take_mutate(self):
        number = self.n()
        assert number in self.objects
        self.objects[number] = contents = self.contents(number)
        return f"{number} {contents}"

    def take_free(self):
        number = self.n()
        self.objects.pop(number, None)
        return str(number)

    def take_raise(self):
        return f"{self.name()} {self.value()}"

    def take_handled(self):
        return ""

    def take_output(self):
        return f"{self.n()} {self.n()} {self.n()}"

    def take_event(self):
        return f"{self.name()} {self.n()}"

    def take_lost(self):
        self.lost.append((self.n(), self.string()))
        self.step += self.lost[-1][0]
        self.frames.clear()
        self.objects.clear()
        self.variables, self.current = {0: {}}, 0
        return f"{self.lost[-1][0]} {quoted(self.lost[-1][1].encode())}"


def quoted(data: bytes) -> str:
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in data) + '"'
