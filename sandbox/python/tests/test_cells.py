"""The rows and cells behind a value."""

import pytest
from cell_programs import HEAD, PROGRAMS
from tracing import cell


@pytest.mark.parametrize("name, program, path, value, lines, ends", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_cell_has_the_rows_behind_it(name, program, path, value, lines, ends):
    names = {"__name__": "program", "old": [5]}
    found = cell(HEAD + program, path, names)
    assert found["value"] == value, found
    assert ends in found["ends"] and bool(ends) == bool(found["ends"]), found
    for line, (rows, values) in lines.items():
        steps = [step for step in found["from"] if step["line"] == line]
        assert steps, (line, found)
        assert any(step["rows"] == rows for step in steps) or not rows, (line, steps)
        shown = {c["value"] for step in steps for c in step["cells"]}
        assert set(values) <= shown, (line, shown, steps)
