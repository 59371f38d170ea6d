"""Completion from the values of a session. It runs no user code, and does not fail for any text."""

import pathlib
import random

import completion
import incomplete_code
import pytest

NAMES: dict = {}
exec(
    """
import json
class Trap:
    kept = 1
    def __getattribute__(self, name): raise SystemExit(name)
    def __getattr__(self, name): raise SystemExit(name)
    def __dir__(self): raise SystemExit('dir')
    def __len__(self): raise SystemExit('len')
    def __getitem__(self, key): raise SystemExit('item')
    def __call__(self): raise SystemExit('call')
    def made(self) -> 'Trap': raise SystemExit('made')
    @property
    def owned(self) -> str: raise SystemExit('owned')
class Meta(type):
    def __getattribute__(cls, name): raise SystemExit(name)
    def __instancecheck__(cls, other): raise SystemExit('instance')
class Odd(metaclass=Meta):
    of_class = 1
trap, odd = Trap(), Odd
held = {'key': trap, 2: [trap]}
""",
    NAMES,
)
SOURCE = pathlib.Path(completion.__file__).read_text()


def at(code, names=NAMES):
    before, _, after = code.partition("|")
    return completion.complete(before + after, len(before), names, lambda module: True)


@pytest.mark.parametrize(
    "code, text",
    [
        ("trap.ke|", "kept"),
        ("trap.made().own|", "owned"),
        ("trap.owned.low|", "lower"),
        ("held['key'].ma|", "made"),
        ("held[2][0].ke|", "kept"),
        ("held['k|", "key"),
        ("odd.of_|", "of_class"),
        ("odd().of_|", "of_class"),
        ("x = Trap()\nx.ke|\n", "kept"),
        ("print(trap.ke|", "kept"),
        ("[1, 2].app|", "append"),
        ("f(a, [b for b in 'x'.spl|", "split"),
        ("json.dumps('(').|", "upper"),
        ("'it\\'s'.up|", "upper"),
        ("f'SELECT {pri|} FROM users'", "print"),
        ("query(rf\"\"\"a {{b}} {1:>{trap.ke|\"\"\")", "kept"),
        ("f'{held[\"k|\"]}'", "key"),
        ("f'{dict(a={1: [trap.ke|", "kept"),
        ("s = 1\nimport json as j\nj.loa|", "loads"),
        ("from json import loa|", "loads"),
        ("import js|", "json"),
        ("import os, js|", "json"),
    ],
)
def test_matches(code, text):
    if text == "upper" and "dumps" in code:  # dumps has no annotation
        assert not at(code)["settled"]
        return
    assert text in [m["text"] for m in at(code)["matches"]]


@pytest.mark.parametrize(
    "code",
    ["# trap.|", "'trap.|", '"""\ntrap.|', "f'{{trap.|", "f'{1:trap.|", "f'\\N{trap.|", "f'{1}trap.|", "f'{\"{trap.|"]
    + ["trap['x'].|", "trap().|", "held[trap].|", "trap[0]['|"],
)
def test_no_match_for_an_unknown_value(code):
    assert at(code)["matches"] == []


def test_any_text_can_be_completed():
    dice = random.Random(1)
    for cursor in range(0, len(SOURCE), 23):
        found = completion.complete(SOURCE[max(0, cursor - 300) : cursor], 300, NAMES, lambda module: True)
        assert found["cursor_start"] <= found["cursor_end"]
    for _ in range(3000):
        text = "".join(dice.choice("abf.()[]{}'\"\\#\n \t=:,é0") for _ in range(dice.randrange(40)))
        assert completion.complete(text, dice.randrange(50), NAMES, lambda module: True)["matches"] is not None


@pytest.mark.parametrize(
    "text, expression",
    [
        ("a = b.c", "b.c"),
        ("f(x)[1].g(y)", "f(x)[1].g(y)"),
        ("if (a, b)", "(a, b)"),
        ("x + [1]", "[1]"),
        ("'a b'", "'a b'"),
        (")", ""),
        ("", ""),
        ("1 if é.x", "é.x"),
    ],
)
def test_primary(text, expression):
    assert incomplete_code.primary(text) == expression
