"""Pages of the rows of tables, as people read them."""

import protocol
import pytest


def rows(run, **question):
    question.setdefault("number", 0)
    question.setdefault("execution", "e")
    return run.session.answer({"what": "rows", "rows": question})


def column(answer, number=0):
    return [row[number] for row in answer["rows"]]


@pytest.fixture
def tables(run):
    """Runs code as the execution e."""

    def start(code):
        run.session.run({"code": code, "execution_id": "e"})
        return run

    return start


def test_pages_have_all_rows_and_columns(tables):
    run = tables("import pandas as pd\npd.DataFrame({f'c{n}': range(5000) for n in range(120)})")
    answer = rows(run, start=4990, count=100)
    assert (answer["total"], answer["matching"], answer["total_columns"]) == (5000, 5000, 120)
    assert answer["columns"][119] == {"name": "c119", "type": "int64", "kind": "number"}
    assert answer["numbers"] == list(range(4990, 5000))
    assert [row[119] for row in answer["rows"]] == list(range(4990, 5000))


def test_rows_are_sorted_and_filtered_where_they_are(tables):
    run = tables(
        "import pandas as pd\n"
        "pd.DataFrame({'n': range(1000), 'x': [float('nan') if n == 7 else n % 10 / 2 for n in range(1000)],"
        " 't': [None if n == 3 else '' if n == 4 else f't{n}' for n in range(1000)]}, dtype=object)"
        ".astype({'x': float})"
    )
    answer = rows(run, sort="-1", count=1000)
    assert answer["rows"][0][:2] == [9, 4.5] and answer["rows"][-1][1] == {"nan": "nan"}  # NaN is last, either way
    assert rows(run, sort="1", count=1000)["rows"][-1][0] == 7
    assert column(rows(run, sort="-0", count=2)) == [999, 998]
    assert rows(run, sort="2", count=1000)["rows"][-1][2] is None
    contains = rows(run, filters=[{"column": 2, "op": "contains", "value": "T99"}], count=100)
    assert column(contains) == [99, *range(990, 1000)] and contains["matching"] == 11 and contains["total"] == 1000
    both = [{"column": 0, "op": "ge", "value": "990"}, {"column": 1, "op": "gt", "value": "4"}]
    assert column(rows(run, filters=both, sort="-0")) == [999]
    assert column(rows(run, filters=[{"column": 2, "op": "null", "value": ""}])) == [3]
    assert column(rows(run, filters=[{"column": 2, "op": "eq", "value": ""}])) == [4]
    assert rows(run, filters=[{"column": 2, "op": "notnull", "value": ""}])["matching"] == 999


def test_values_keep_their_digits_and_their_kind(tables):
    run = tables(
        "import decimal, datetime\n"
        "[{'i': 2**60, 'd': decimal.Decimal('12.50'), 'f': float('nan'), 'n': None, 'e': '', 'j': {'a': [1]},"
        " 't': 'x' * 1000, 'o': object(), 'w': datetime.date(2026, 1, 2)}]"
    )
    answer = rows(run)
    big, amount, nan, none, empty, nested, long, other, day = answer["rows"][0]
    assert (big, amount, nan, none, empty, day) == (str(2**60), "12.50", {"nan": "nan"}, None, "", "2026-01-02")
    assert nested == {"json": {"a": [1]}}
    assert long == {"cut": "x" * 300, "length": 1000}
    assert list(other) == ["text"]
    assert [each["kind"] for each in answer["columns"]][:2] == ["number", "number"]
    assert rows(run, column=6, whole=True)["rows"] == [["x" * 1000]]


def test_an_index_is_a_column_unless_it_only_counts(tables):
    run = tables("import pandas as pd\npd.DataFrame({'n': [1, 2]}, index=pd.Index(['a', 'b'], name='key'))")
    answer = rows(run)
    assert [each["name"] for each in answer["columns"]] == ["key", "n"]
    assert answer["rows"] == [["a", 1], ["b", 2]]
    tables("pd.DataFrame({'n': [1, 2]})")
    assert [each["name"] for each in rows(run)["columns"]] == ["n"]


def test_statistics_of_a_column(tables):
    run = tables("import pandas as pd\npd.DataFrame({'x': [1.0, 2.0, 2.0, float('nan')], 't': ['a', '', None, 'a']})")
    stats = rows(run, stats=0)["stats"]
    assert (stats["count"], stats["missing"], stats["nan"], stats["distinct"]) == (4, 0, 1, 2)
    assert (stats["min"], stats["max"], stats["sum"], stats["median"]) == (1.0, 2.0, 5.0, 2.0)
    stats = rows(run, stats=1)["stats"]
    assert (stats["missing"], stats["empty"]) == (1, 1)
    assert stats["top"][0] == {"value": "a", "count": 2}
    assert rows(run, stats=1, filters=[{"column": 0, "op": "eq", "value": "2"}])["stats"]["count"] == 2


def test_the_last_value_is_kept_until_the_next_run_and_a_variable_as_long_as_it_is_there(tables):
    run = tables("import pandas as pd\npd.DataFrame({'n': range(100)})")
    assert rows(run, start=99)["rows"] == [[99]]
    run.session.run({"code": "df = pd.DataFrame({'n': range(100)})\ndf", "execution_id": "f"})
    assert rows(run)["failed"] == "NoTable"
    run.session.run({"code": "other = 1", "execution_id": "g"})
    assert rows(run, execution="f", start=99)["rows"] == [[99]]
    assert rows(run, variable="df", start=99)["rows"] == [[99]]
    run.session.run({"code": "del df", "execution_id": "h"})
    assert rows(run, execution="f")["failed"] == "NoTable"
    assert rows(run, variable="df")["failed"] == "NoTable"
    assert rows(run, variable="other")["failed"] == "NoTable"


def test_a_shown_table_has_a_number(run):
    run.session.run(
        {
            "code": "import pandas as pd\nsmall, large = (pd.DataFrame({'n': range(n)}) for n in (5, 100))\n"
            "display(small)\ndisplay(large)",
            "execution_id": "e",
        }
    )
    shown = [output["data"]["application/vnd.dataresource+json"] for output in run.channel.outputs]
    assert [each.get("number") for each in shown] == [None, 1]
    assert rows(run, number=1, start=99)["rows"] == [[99]]


def test_no_code_of_the_user_runs(tables):
    run = tables(
        "class Loud:\n"
        "    def __repr__(self): raise SystemExit('asked')\n"
        "    __str__ = __eq__ = __lt__ = __hash__ = __repr__\n"
        "[{'x': Loud()}, {'x': Loud()}]"
    )
    question = {"sort": "0", "filters": [{"column": 0, "op": "contains", "value": "Loud"}]}
    assert rows(run, **question)["matching"] == 2
    assert rows(run, stats=0)["stats"]["count"] == 2


def test_a_changed_table_is_sorted_again(tables):
    run = tables("import pandas as pd\ndf = pd.DataFrame({'n': [1, 2, 3]})\ndf")
    assert column(rows(run, sort="-0")) == [3, 2, 1]
    run.session.run({"code": "df.loc[0, 'n'] = 9", "execution_id": "f"})
    assert column(rows(run, sort="-0")) == [9, 3, 2]


def test_a_page_stays_within_a_frame(tables):
    run = tables("[{f'c{c}': 'é' * 299 for c in range(100)} for n in range(1000)]")
    answer = rows(run, count=1000)
    assert 0 < len(answer["rows"]) < 400
    assert len(answer["numbers"]) == len(answer["rows"])
    assert rows(run, start=999)["numbers"] == [999]


@pytest.mark.parametrize("text", ["'é' * 10**6", "'\U0001f600' * 10**6"])
def test_large_cells_and_names_stay_within_a_frame(tables, text):
    run = tables(f"[{{f'{{c}}' + {text}: {text} for c in range(3)}}]")
    for question in ({}, {"column": 1, "whole": True}, {"stats": 1}, {"whole": True}):
        answer = rows(run, **question)
        assert "failed" not in answer
        assert len(protocol.encode(answer)) < 1_000_000, question
    many = tables(f"[{{f'{{c}}' + ({text})[:300]: ({text})[:400] for c in range(2000)}}]")
    assert len(protocol.encode(rows(many))) < 1_000_000
    assert len(rows(many)["rows"]) == 1


def test_a_million_rows_are_sorted_filtered_and_counted(tables):
    run = tables(
        "import numpy as np, pandas as pd\n"
        "pd.DataFrame({'n': np.arange(1_000_000), 'x': np.arange(1_000_000) % 7 / 2, 't': ['a'] * 1_000_000})"
    )
    assert column(rows(run, sort="-0", count=1)) == [999_999]
    assert rows(run, filters=[{"column": 1, "op": "gt", "value": "2.5"}])["matching"] == 142_857
    stats = rows(run, stats=1)["stats"]
    assert (stats["distinct"], stats["max"], stats["min"], sum(stats["bins"])) == (7, 3.0, 0.0, 1_000_000)
    assert "too many values to sort" in rows(run, sort="2")["reason"]
    assert rows(run, filters=[{"column": 0, "op": "lt", "value": "5"}], sort="2", stats=2)["stats"]["count"] == 5
