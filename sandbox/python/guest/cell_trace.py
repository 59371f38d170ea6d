"""The trace of a run: which values its expressions had, in which order, and what assigned or changed what.

    trace = Trace(source, path)     # path is the asked value, such as rows[3]["x"]
    tree = trace.instrument(tree)   # calls HOOK with the value of each expression
    ...                             # run it
    trace.end(names)                # where the value came from, as sandbox.Cell

It keeps a copy of each table, and holds no object of the program's own classes. It calls no code of the program, and
reads no clock.
"""

import ast
import builtins
import sys
import threading
import types

import cell_paths
import cell_walk
from cell_changes import Changes
from cell_frames import Frames, place_of
from cell_instrument import Program
from cell_things import Things
from cell_values import HOOK, Event, Expression, expressions_of

MAX_EVENTS = 120_000  # of a run

_frame = sys._getframe


class Trace:
    """The trace of one run."""

    def __init__(self, source: str, path: str):
        self.path = path
        self.program = Program(source)
        self.things = Things()
        self._frames = Frames(self.program, self.things)
        self.changes = Changes(self.program, self.things, self._frames)
        self._elements: dict[int, list[Event]] = {}  # of comprehensions that run
        self.n = 0  # of the last event
        self._events = 0
        self.full = ""  # why the trace has ended
        self._lock = threading.Lock()

    def instrument(self, tree: ast.Module) -> ast.Module:
        """Returns the tree with calls of the hook, which begins to work."""
        setattr(builtins, HOOK, self._hook)
        self.program.instrument(tree)
        self.full = self.program.full
        return tree

    def end(self, names: dict) -> dict:
        """Ends the work of the hook. Returns the asked value of a namespace, and what it was made from."""
        setattr(builtins, HOOK, _no_hook)
        with self._lock:
            self.changes.finish()
            try:
                return cell_walk.answer(self, names)
            except cell_paths.NoValue as error:
                return {"value": "", "from": [], "ends": str(error)}
            except Exception as error:  # of numpy or pandas
                return {"value": "", "from": [], "ends": f"not followed: {type(error).__name__}"}
            finally:
                self.things.clear()
                self._frames.clear()
                self.program.expressions.clear()

    # -- while the code runs

    def _hook(self, number: int, value):
        expression = self.program.expressions.get(number)
        if expression is None or expression.is_idle or self.full or not self._lock.acquire(False):
            return value
        try:
            self._see(expression, value, _frame(1))
        except Exception as error:  # of numpy or pandas, or at the limit of the recursion
            self.full = f"a value could not be read ({type(error).__name__})"
        finally:
            self._lock.release()
        return value

    def _see(self, expression: Expression, value, frame: types.FrameType) -> None:
        self.changes.finish()
        self.n += 1
        expression.times += 1
        place = place_of(frame)
        if expression.times > cell_walk.MAX_TIMES:
            self._frames.skip(place, expression)
            self.changes.skip(expression, value, self.n)
            return
        self._events += 1
        if self._events > MAX_EVENTS:
            self.full = f"the run evaluated more than {MAX_EVENTS} expressions"
            return
        if expression.kind in ("turn", "begin"):
            self._frames.begin(self.n, expression, value, place, frame)
            return
        event = Event(self.n, expression)
        event.parts = self._frames.take_parts(place, expression)
        event.key = self._frames.take_keys(place, expression.parts)
        self.things.keep(event, value)
        node = expression.node
        self._gather(event)
        if expression.kind == "name":
            self._frames.load(event, value, place, frame, expression.alias or node.id)
        elif expression.kind == "augmented name":
            thing = self.things.of(value)
            left = event.parts[0]
            if thing is not None and left is not None and left.thing is thing:
                event.is_change = True
                self.things.change(thing, event)
            else:
                self.things.made(event, value)
        else:
            if isinstance(node, ast.Call) or isinstance(node, ast.Await):
                self.changes.call(event, value, node if isinstance(node, ast.Call) else node.value)
            self.things.made(event, value)
        self._frames.add(place, event, value)
        for store in expression.stores:
            self._store(store, place)

    def _gather(self, event: Event) -> None:
        """Collects the elements of comprehensions."""
        expression, node = event.expression, event.expression.node
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for n, (role, each) in enumerate(expression.parts):
                if role in ("element", "key") and isinstance(each, Expression):
                    event.parts[n] = None
                    if isinstance(node, ast.GeneratorExp):  # its elements come later
                        event.turns = self._elements[each.number] = []
                    elif role == "element":
                        event.turns = self._elements.pop(each.number, [])
                    else:
                        event.keys = self._elements.pop(each.number, [])
        if expression.is_element:
            self._elements.setdefault(expression.number, []).append(event)

    def _store(self, store: Expression, place: int) -> None:
        container, value = (self._frames.part(place, each) for _, each in store.parts)
        if container is None:
            return
        self.n += 1
        event = Event(self.n, store)
        event.parts = [container, value]
        event.key = {each.number: self._frames.part(place, each) for each in expressions_of(store.key)}
        self.changes.store(event)


def _no_hook(number: int, value):
    """Serves functions that run after the end, for example at exit."""
    return value
