"""Compares variables with their last recorded values, and records the differences."""

import builtins
import sys

import lookup
import recorder_code
import recorder_format as form
import recorder_objects
from recorder_code import Frame
from recorder_format import varint

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

FEW_NAMES = 12  # names of the namespace that are compared at each of its lines
FULL_READ_INTERVAL = 16  # lines; with more names, those of the line are compared, and all of them once an interval

_PREPARED = "its namespace is not a dict"
_MISSING = object()
_PROXY = type((lambda: sys._getframe().f_locals)()) if recorder_code.PROXY else dict


class Variables:
    """A base class of recorder.Recorder, which has these fields."""

    _names: dict
    _helpers: dict
    _recorded: dict
    _prefixes: dict
    _watched: tuple
    _watch_all: bool
    _has_odd_names: bool
    _writer: form.Writer
    _objects: recorder_objects.Objects
    steps: int

    def _read_variables(self, frame, known: Frame) -> None:
        """Records the changes of the variables that the frame can reach."""
        self._objects.event += 1
        code = known.code
        if code.module:
            if code.hidden:
                self._read_hidden(frame, known)
            if self._watch_all:
                self._read_all_names()
                return
            turn = code.names_of_turn.get(known.turn)
            self._read_namespace(code.names_by_line.get(known.line, ()) if turn is None else turn)
            if self.steps % FULL_READ_INTERVAL == 0:
                self._read_namespace(self._watched)
            elif len(self._watched) <= FEW_NAMES:
                self._objects.skips_tables = True
                self._read_namespace(self._watched)
                self._objects.skips_tables = False
            self._read_sharing_arrays()
            return
        if code.dynamic and not self._has_odd_names:
            self._has_odd_names = not lookup.are_plain(self._names)
        if not code.unread:
            recorded, found = known.recorded, frame.f_locals
            if type(found) is not dict:
                if not recorder_code.PROXY or type(found) is not _PROXY:  # a metaclass has prepared it
                    code.unread = _PREPARED
                    self._writer.out += varint(form.UNREAD) + self._writer.name(_PREPARED)
                    return
            snapshot = found
            if recorder_code.PROXY or not lookup.are_plain(found):
                found = {name: value for name, value in found.items() if type(name) is str}
            for name, value in found.items():
                old = recorded.get(name, _MISSING)
                if old is not value:
                    self._record_variable(form.SET, recorded, name, old, value)
            if code.deletes and not recorded.keys() <= found.keys():
                for name in [name for name in recorded if name not in found]:
                    self._record_deletion(form.DELETE, recorded, name)
            if code.clear_snapshot:
                snapshot.clear()  # otherwise an object would outlive its variable
        if code.reads:
            self._read_namespace(code.reads)
        self._read_sharing_arrays()

    def _read_sharing_arrays(self) -> None:
        """Compares the arrays of the namespace if the line has changed one, because they may share its memory."""
        objects = self._objects
        if objects.array_changed:
            objects.skips_frames = True
            self._read_namespace(self._watched)
            objects.skips_frames = objects.array_changed = False

    def _read_hidden(self, frame, known: Frame) -> None:
        """Records the variables of a comprehension that Python has inlined into the module's code. While it runs,
        f_locals is not the namespace."""
        found, recorded = frame.f_locals, known.recorded
        if found is not self._names:
            for name in known.code.hidden:
                value = found.get(name, _MISSING)
                if value is not _MISSING and (name not in self._names or self._names[name] is not value):
                    self._record_variable(form.SET, recorded, name, recorded.get(name, _MISSING), value)
        elif recorded:
            for name in list(recorded):
                self._record_deletion(form.DELETE, recorded, name)

    def _plain_names(self) -> dict:
        """Returns the namespace, or a copy of it without the keys that are not exactly str."""
        return dict(lookup.pairs(self._names)) if self._has_odd_names else self._names

    def _read_all_names(self) -> None:
        names = dict(lookup.pairs(self._names))
        self._has_odd_names = len(names) < len(self._names)
        self._record_changes(names, names)
        for name in [name for name in self._recorded if name not in names]:
            self._record_deletion(form.FORGET, self._recorded, name)

    def _read_namespace(self, which) -> None:
        self._record_changes(self._plain_names(), which)

    def _record_changes(self, names: dict, which) -> None:
        """Records the changes of these variables of the namespace."""
        recorded, helpers = self._recorded, self._helpers
        for name in which:
            value, old = names.get(name, _MISSING), recorded.get(name, _MISSING)
            if old is value:
                continue
            if value is _MISSING:
                self._record_deletion(form.FORGET, recorded, name)
            elif helpers.get(name, _MISSING) is not value and (name[:2] != "__" or name == "__result__"):
                self._record_variable(form.GLOBAL, recorded, name, old, value)
        if len(recorded) > len(names):
            for name in [name for name in recorded if name not in names]:
                self._record_deletion(form.FORGET, recorded, name)

    def _record_variable(self, record: int, recorded: dict, name: str, old, value) -> None:
        kind, data, entry = type(value), None, None
        if kind is int or kind is str:
            if type(old) is kind and old == value:
                recorded[name] = value
                return
            data = form.integer(value) if kind is int else form.scalar(value)
        elif (
            type(old) is recorder_objects.Entry
            and old.address == id(value)
            and old.kind == id(kind)
            and old.version > 0
        ):
            if old.reader.peek is not None:
                self._objects.record_changes(value, old)
            return
        if name[:1] == "." or name[:2] == "__" and record == form.SET:
            return
        prefix = self._prefixes[record].get(name) or self._prefix(record, name)
        if data is None:
            data, entry = self._objects.value(value)
        self._writer.out += prefix + data
        if entry is not None:
            entry.holders += 1
            recorded[name] = entry
        else:
            recorded[name] = value
        if type(old) is recorder_objects.Entry:
            self._objects.drop_holder(old)

    def _prefix(self, record: int, name: str) -> bytes:
        """Returns the first bytes of a record that sets a name."""
        prefix = self._prefixes[record][name] = varint(record) + self._writer.name(name)
        return prefix

    def _record_deletion(self, record: int, recorded: dict, name: str) -> None:
        old = recorded.pop(name)
        self._writer.out += varint(record) + self._writer.name(name)
        if type(old) is recorder_objects.Entry:
            self._objects.drop_holder(old)
