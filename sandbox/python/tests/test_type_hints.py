"""A TypeError about a value of the database says how to convert it."""

import pytest

ROWS = {
    "n": ("decimal", ["1.10"]),
    "u": ("uuid", ["00000000-0000-0000-0000-000000000001"]),
    "d": ("date", ["2024-01-02"]),
    "i": ("int", [1]),
}


@pytest.mark.parametrize(
    ("code", "hints"),
    [
        ("json.dumps(db_query('q'))", ["type Decimal", "default=str", "default=float"]),
        ("rows = db_query('q')\njson.dumps(rows)", ["the column 'n'", "default=str", "default=float"]),
        ("row = db_query('q')[0]\ndel row['n']\njson.dumps({'x': [row]})", ["the column 'u'", "UUID", "default=str"]),
        ("rows = [{'d': date(2024, 1, 2)}]\njson.dumps(rows, indent=2)", ["the column 'd'", "date", "default=str"]),
        ("import io\nx = date(2024, 1, 2)\njson.dump([x], io.StringIO())", ["default=str"]),
        ("json.dumps({1, 2})", ["default=list"]),
        ("import numpy\njson.dumps({'x': numpy.int64(1)})", ["tolist()"]),
        ("json.dumps(db_frame('q'))", ["to_json"]),
        ("db_query('q')[0]['n'] * 0.5", ["float(x)", "::float8"]),
        ("0.5 / db_query('q')[0]['n']", ["float(x)", "::float8"]),
        ("f = db_frame('q')\nf[f.d >= date(2024, 1, 1)]", ["pd.Timestamp(x)"]),
        ("f = db_frame('q')\nf.d.between(date(2024, 1, 1), date(2024, 2, 1))", ["pd.Timestamp(x)"]),
        ("f = db_frame('q')\nf.d - date(2024, 1, 1)", ["pd.Timestamp(x)"]),
        ("import pandas\npandas.Series([pandas.Timestamp('2024', tz='UTC')]) > datetime(2024, 1, 1)", ["tz='UTC'"]),
        ("import pandas\npandas.Timestamp('2024', tz='UTC') > pandas.Timestamp('2024')", ["tz='UTC'"]),
    ],
)
def test_a_value_of_the_database(run, code, hints):
    run.channel.answers(**ROWS)
    failure = run("import json\nfrom datetime import date\n" + code).failure
    assert failure.type == "TypeError"
    for hint in hints:
        assert hint in failure.hint


@pytest.mark.parametrize(
    "code",
    ["1 + 'a'", "json.dumps({date(2024, 1, 2): 1})", "len(5)", "raise TypeError('decimal')", "{}[[]]"],
)
def test_other_type_errors_have_no_such_hint(run, code):
    assert run("import json\nfrom datetime import date\n" + code).failure.hint == ""


@pytest.mark.parametrize(
    "code",
    [
        "json.dumps(db_query('q'), default=str)",
        "json.dumps([{k: float(v) for k, v in r.items() if k == 'n'} for r in db_query('q')])",
        "f = db_frame('q')\nlen(f[f.d >= pandas.Timestamp(date(2024, 1, 1))])",
        "f = db_frame('q')\n(f.n * 0.5)[0]",
        "f = db_frame('q')\nf.to_json(orient='records', date_format='iso')",
    ],
)
def test_what_the_hints_say_works(run, code):
    run.channel.answers(**ROWS)
    assert run("import json, pandas\nfrom datetime import date\n" + code).ok
