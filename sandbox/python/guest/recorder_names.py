"""The part of a recorder that compares variables with what was recorded of them last."""

import builtins
import sys

import recorder_code
import recorder_format as form
import recorder_values
from recorder_code import Frame
from recorder_format import n

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

FEW = 12  # names of the namespace that are looked at with each of its lines
EVERY = 16  # lines, with more names: then the line's own, and all of them each so many

_PREPARED = "its namespace is not a dict"
_MISSING = object()
_PROXY = type((lambda: sys._getframe().f_locals)()) if recorder_code.PROXY else dict


class Names:
    """Of recorder.Recorder, whose fields these are."""

    _names: dict
    _given: dict
    _seen: dict
    _heads: dict
    _watched: tuple
    _whole: bool
    _writer: form.Writer
    _objects: recorder_values.Objects
    count: int

    def _read(self, frame, known: Frame) -> None:
        """Records what has changed in what the frame can reach."""
        self._objects.tick += 1
        code = known.code
        if code.module:
            if self._whole:
                self._namespace(list(self._names))
            elif len(self._watched) <= FEW or self.count % EVERY == 0:
                self._namespace(self._watched)
            else:
                self._namespace(code.named.get(known.line, ()))
            return
        if not code.unread:
            seen, found = known.seen, frame.f_locals
            if type(found) is not dict:
                if not recorder_code.PROXY or type(found) is not _PROXY:  # what a metaclass has prepared
                    code.unread = _PREPARED
                    self._writer.out += n(form.UNREAD) + self._writer.name(_PREPARED)
                    return
                found = dict(found)
            for name, value in found.items():
                old = seen.get(name, _MISSING)
                if old is not value:
                    self._set(form.SET, seen, name, old, value)
            if code.deletes and not seen.keys() <= found.keys():
                for name in [name for name in seen if name not in found]:
                    self._delete(form.DELETE, seen, name)
            if code.snapshot:
                found.clear()  # or what it holds would outlive its variable
        if code.reads:
            self._namespace(code.reads)

    def _namespace(self, which) -> None:
        names, seen, given = self._names, self._seen, self._given
        for name in which:
            value, old = names.get(name, _MISSING), seen.get(name, _MISSING)
            if old is value:
                continue
            if value is _MISSING:
                self._delete(form.FORGET, seen, name)
            elif given.get(name, _MISSING) is not value and (name[:2] != "__" or name == "__result__"):
                self._set(form.GLOBAL, seen, name, old, value)
        if len(seen) > len(names):
            for name in [name for name in seen if name not in names]:
                self._delete(form.FORGET, seen, name)

    def _set(self, record: int, seen: dict, name: str, old, value) -> None:
        kind, data, entry = type(value), None, None
        if kind is int or kind is str:
            if type(old) is kind and old == value:
                seen[name] = value
                return
            data = form.integer(value) if kind is int else form.scalar(value)
        elif type(old) is recorder_values.Entry and old.address == id(value) and old.kind == id(kind) and old.version > 0:
            if old.reader.peek is not None:
                self._objects.check(value, old)
            return
        if name[:1] == "." or name[:2] == "__" and record == form.SET:
            return
        head = self._heads[record].get(name) or self._head(record, name)
        if data is None:
            data, entry = self._objects.value(value)
        self._writer.out += head + data
        if entry is not None:
            entry.held += 1
            seen[name] = entry
        else:
            seen[name] = value
        if type(old) is recorder_values.Entry:
            self._objects.drop(old)

    def _head(self, record: int, name: str) -> bytes:
        """How a record begins that sets a name."""
        head = self._heads[record][name] = n(record) + self._writer.name(name)
        return head

    def _delete(self, record: int, seen: dict, name: str) -> None:
        old = seen.pop(name)
        self._writer.out += n(record) + self._writer.name(name)
        if type(old) is recorder_values.Entry:
            self._objects.drop(old)
