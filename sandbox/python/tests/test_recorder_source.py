"""The descriptions of a program's statements, which the service reads to explain a value."""

import ast
import textwrap

import pytest
import recorder_source


def described(source):
    return recorder_source.statements(ast.parse(textwrap.dedent(source)))


@pytest.mark.parametrize(
    ("source", "reads", "sets", "mutates"),
    [
        ("total = a + b.c", "a b", "total", ""),
        ("a[i] = b", "a i b", "", "a"),
        ("a.b.c += 1", "a", "", "a"),
        ("x += y", "x y", "x", ""),
        ("xs.append(y)", "xs y", "", "xs"),
        ("r = [x * k for x in xs if x > low]", "xs low k", "r", ""),
        ("f = lambda n, m=d: n + m + o", "d o", "f", ""),
        ("if (n := len(xs)) > 2:\n    pass", "xs len", "n", ""),
        ("for i, (j, k) in pairs:\n    pass", "pairs", "i j k", ""),
        ("with open(p) as f:\n    pass", "open p", "f", ""),
        ("def f(a, b=c):\n    return z", "c", "f", ""),
        ("import a.b, c as d", "", "a d", ""),
        ("del a[0]", "a", "", "a"),
        ("print(f'{x!r:>{w}}')", "print x w", "", ""),
        ("a, *b = c", "c", "a b", ""),
    ],
)
def test_reads_and_sets(source, reads, sets, mutates):
    first = described(source)[0]
    found = [" ".join(sorted(first.get(key, []))) for key in ("reads", "sets", "mutates")]
    assert found == [" ".join(sorted(names.split())) for names in (reads, sets, mutates)]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x = [i for i in y]", []),
        ("x = [\n i\n for i in y]", [[1, 3]]),
        ("x = f(\n {i\n  for i in y},\n sum(\n  i for i in {j:\n   1 for j in y}))", [[2, 3], [4, 6]]),
        ("for x in [\n  i for i in y]:\n z = [\n  i for i in y]", [[1, 2]]),
    ],
)
def test_lines_of_comprehensions(source, lines):
    assert described(source)[0].get("comprehensions", []) == lines


def test_statements_name_the_one_that_they_are_in():
    found = described("""
        def f(xs):
            for x in xs:
                try:
                    y = int(x)
                except ValueError:
                    pass
        class A:
            def m(self):
                z = 1
    """)
    lines = {each["line"]: each for each in found}
    chain, number = [], found.index(lines[5]) + 1
    while number:
        chain.append(found[number - 1]["kind"])
        number = found[number - 1].get("in", 0)
    assert chain == ["assign", "try", "for", "def"]
    assert (lines[4]["end"], lines[5]["function"], lines[10]["function"]) == (5, "f", "A.m")
    assert lines[6]["checks"] == [{"kind": "except", "text": "ValueError", "passes": True}]


@pytest.mark.parametrize(
    ("source", "check"),
    [
        ("v = a.x // n", {"kind": "floor_division", "text": "a.x // n"}),
        ("v = rates.get(key, 1)", {"kind": "default_item", "of": "rates", "args": ["key", "1"]}),
        ("v = rates.get(key)", None),
        ("v = a.drop_duplicates('k')", {"kind": "drop_duplicates", "of": "a", "keys": ["k"]}),
        ("v = a.drop_duplicates(subset=['k', 'l'])", {"kind": "drop_duplicates", "of": "a", "keys": ["k", "l"]}),
        ("v = a.drop_duplicates('k', keep='last')", None),
        ("v = a['x'].astype(int)", {"kind": "convert", "of": "a", "column": "x", "to": "int"}),
        ("v = int(a / b)", {"kind": "convert", "call": "int"}),
        ("v = int(a)", None),
        ("v = sum(xs)", {"kind": "iterate", "of": "xs", "call": "sum"}),
        ("a[a.x > 1]['x'] = 0", {"kind": "chained", "of": "a"}),
        ("a.loc[a.x > 1, 'x'] = 0", None),
        ("a.dropna()", {"kind": "discarded", "of": "a"}),
        ("a.dropna(inplace=True)", None),
        ("b = a", {"kind": "alias", "of": "a"}),
        ("def f(a=[]):\n    pass", {"kind": "default", "of": "a", "call": "f"}),
    ],
)
def test_checks(source, check):
    found = described(source)[0].get("checks", [])
    if check is None:
        assert found == []
    else:
        assert [{key: each.get(key) for key in check} for each in found] == [check]


def test_a_deep_program_has_no_descriptions():
    tree = ast.parse("x = " + "-" * 80 + "1")
    for _ in range(5000):
        tree.body[0].value = ast.UnaryOp(ast.USub(), tree.body[0].value)
    assert recorder_source.describe(tree) == []
