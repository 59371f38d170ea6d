"""Values of classes that are derived from scalars, enumerations and named tuples: their texts run no code."""

import values

CODE = """
import collections, enum
class I(int):
    def __repr__(self): raise SystemExit
class S(str):
    __str__ = __repr__ = lambda self: touched.append(1)
class F(float): pass
class B(bytes): pass
class E(enum.Enum):
    A = 1
    LONG = "text"
    PAIR = (1, 2)
class N(enum.IntEnum):
    ONE = 1
class G(enum.Flag):
    X = 1
    Y = 2
class Unit(int): pass
P = collections.namedtuple("P", "x y")
class Q(P):
    pass
class NotFields(tuple):
    _fields = 3
touched = []
unit = Unit(5)
unit.name = "m"
found = [I(3), S("abc"), F(1.5), B(b"x"), E.A, E.LONG, E.PAIR, N.ONE, G.X | G.Y, I(10 ** 20), unit,
         P(1, [2]), Q("a", None), NotFields((1, 2))]
"""
WANT = [
    *("I(3)", "S('abc')", "F(1.5)", "B(b'x')", "<E.A: 1>", "<E.LONG: 'text'>", "<E.PAIR>", "<N.ONE: 1>"),
    *("<G.X|Y: 3>", "I(100000000000000000000)", "Unit(5)", "<P x=1, y=[2]>", "<Q x='a', y=None>", "NotFields((1, 2))"),
]


def test_texts_of_derived_values():
    names: dict = {"__name__": "__main__"}
    exec(CODE, names)
    assert [values.preview(each) for each in names["found"]] == WANT
    assert names["touched"] == []
