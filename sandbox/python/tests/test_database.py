import json

import pytest


def one(run, kind, value, code="(await db_query('q'))[0]['v']"):
    run.channel.answers(v=(kind, [value]))
    return run(code)


@pytest.mark.parametrize(
    ("kind", "value", "check"),
    [
        ("int", 5, "v == 5"),
        ("float", float("nan"), "v != v"),
        ("string", "x", "v == 'x'"),
        ("bytes", b"\x00x", "v == b'\\x00x'"),
        ("bool", True, "v is True"),
        ("int", None, "v is None"),
        ("decimal", "12.340", "type(v) is decimal.Decimal and str(v) == '12.340'"),
        ("decimal", "NaN", "v.is_nan()"),
        ("date", "2024-01-02", "v == dt.date(2024, 1, 2)"),
        ("date", "infinity", "v == 'infinity'"),
        ("date", "0044-03-15 BC", "v == '0044-03-15 BC'"),
        ("time", "01:02:03.5", "v == dt.time(1, 2, 3, 500000)"),
        ("time", "24:00:00", "v in ('24:00:00', dt.time(0))"),
        ("timetz", "01:02:03+02:00", "v.utcoffset() == timedelta(hours=2)"),
        ("timestamp", "2024-01-02T03:04:05.000006", "v == datetime(2024, 1, 2, 3, 4, 5, 6) and v.tzinfo is None"),
        ("timestamp", "20240-01-02T03:04:05", "v == '20240-01-02T03:04:05'"),
        (
            "timestamptz",
            "2024-01-02T03:04:05+02:00",
            "v == datetime(2024, 1, 2, 1, 4, 5, tzinfo=timezone.utc) and v.tzinfo is timezone.utc",
        ),
        ("timestamptz", "-infinity", "v == '-infinity'"),
        ("timestamptz", "0001-01-01T00:00:00+14:00", "type(v) is str"),
        ("timedelta", [1, 2, 3_000_000], "v == timedelta(days=32, seconds=3)"),
        ("timedelta", [10**9, 0, 0], "v == '83333333 years 4 mons 0 days 0 microseconds'"),
        ("timedelta", [14, 2, 0], "v == timedelta(days=365 + 60 + 2)"),
        ("timedelta", [-14, 2, 0], "v == timedelta(days=-365 - 60 + 2)"),
        ("inet", "10.0.0.1", "str(v) == '10.0.0.1' and v.is_private"),
        ("inet", "10.0.0.1/8", "str(v.network) == '10.0.0.0/8'"),
        ("cidr", "2001:db8::/32", "v.num_addresses == 2 ** 96"),
        ("record", '(1,"a ""b"", c",,"")', "v == ('1', 'a \"b\", c', None, '')"),
        ("record", "()", "v == ()"),
        (
            "range:int",
            "[1,10)",
            "(v.lower, v.upper, v.bounds, 9 in v, 10 in v, v == Range(1, 10)) == (1, 10, '[)', True, False, True)",
        ),
        ("range:int", "empty", "v.isempty and 1 not in v and str(v) == 'empty'"),
        (
            "range:decimal",
            "(,1.5]",
            "v.lower is None and decimal.Decimal('1.5') in v and not v.lower_inc and str(v) == '(,\"1.5\"]'",
        ),
        ("range:timestamp", '["2024-01-02 03:04:05","2024-01-03 00:00:00")', "datetime(2024, 1, 2, 12) in v"),
        ("range:date", "[2024-01-01,infinity)", "v == '[2024-01-01,infinity)'"),
        ("range:int[]", ["[1,2)", None], "v == [Range(1, 2), None]"),
        ("multirange:int", "{[1,3),[5,)}", "v == [Range(1, 3), Range(5, None)]"),
        ("multirange:int", "{}", "v == []"),
        ("uuid", "00000000-0000-0000-0000-000000000001", "v == uuid.UUID(int=1)"),
        ("json", '{"a": [1, null]}', "v == {'a': [1, None]}"),
        ("json", "9" * 5000, "type(v) is str"),
        ("int[]", [1, None, [2]], "v == [1, None, [2]]"),
        ("decimal[]", [["1.5", None], ["2"]], "v == [[decimal.Decimal('1.5'), None], [decimal.Decimal(2)]]"),
        ("timedelta[]", [[0, 1, 0], None], "v == [timedelta(days=1), None]"),
        ("timedelta[]", [[[0, 1, 0], [0, 2, 0], [0, 3, 0]]], "[len(x) for x in v] == [3]"),
        ("json[]", ['{"a": 1}', None], "v == [{'a': 1}, None]"),
        ("timestamptz[]", None, "v is None"),
    ],
)
def test_types(run, kind, value, check):
    assert (
        one(run, kind, value, f"import datetime as dt, decimal, uuid\nv = (await db_query('q'))[0]['v']\n{check}").ok
        is True
    )


def test_a_column_with_one_odd_value_keeps_the_others(run):
    run.channel.answers(v=("date", ["2024-01-02", "infinity", None, "2024-01-03"]))
    assert run("[type(r['v']).__name__ for r in db_query('q')]").ok == ["date", "str", "NoneType", "date"]


@pytest.mark.parametrize(
    "code",
    [
        "await db_query('q')",
        "db_query('q')",
        "import asyncio\n(await asyncio.gather(db_query('a'), db_query('b')))[1]",
        "import asyncio\nt = asyncio.create_task(db_query('q'))\nawait t",
        "import asyncio\nawait asyncio.wait_for(db_query('q'), 5)",
        "import asyncio\nasync with asyncio.TaskGroup() as g:\n    t = g.create_task(db_query('q'))\nt.result()",
        "import asyncio\nawait asyncio.ensure_future(db_query('q'))",
        "import asyncio\nasync def main():\n    return await db_query('q')\nasyncio.run(main())",
        "import asyncio\nasyncio.run(db_query('q'))",
        "async def f():\n    return db_query('q')\nawait (await f())",
        "[row for row in db_query('q')]",
        "import copy\ncopy.deepcopy(db_query('q'))",
        "import pickle\npickle.loads(pickle.dumps(db_query('q')))",
    ],
)
def test_with_and_without_await(run, code):
    run.channel.answers(a=("int", [1, 2]), b=("string", ["x", None]))
    assert run(code).ok == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_awaited_rows_are_a_plain_list(run):
    run.channel.answers(a=("int", [1]))
    assert run("rows = await db_query('q')\ntype(rows) is list").ok is True


def test_columns_of_one_name_are_kept_apart(run):
    run.channel.columns = [
        {"name": n, "type": "int4", "kind": "int", "array": False} for n in ("id", "id", "id_2", "id")
    ]
    run.channel.data = [[1], [2], [3], [4]]
    assert run("db_query('q')").ok == [{"id": 1, "id_2": 2, "id_2_2": 3, "id_3": 4}]


def test_result_without_rows(run):
    run.channel.answers(a=("int", []))
    assert run("await db_query('q')").ok == []


def test_truncation_is_reported(run, capsys):
    mine = type(run)()
    mine.channel.answers(a=("int", [1, 2]))
    assert mine("db_query('q').truncated").ok is False
    assert capsys.readouterr().err == ""
    mine.channel.truncated = True
    assert mine("db_query('q').truncated").ok is True
    assert "only the first 2 rows" in capsys.readouterr().err


REFUSAL = {
    "reason": "unknown-column",
    "message": "column totl does not exist",
    "sqlstate": "42703",
    "position": 8,
    "line": 1,
    "nearest": "total",
    "hint": "did you mean total?",
    "failed": True,
}


def test_database_error(run):
    run.channel.refusal = REFUSAL
    failure = run("x = 1\nawait db_query('select totl')").failure
    assert (failure.type, failure.line, failure.hint) == ("DatabaseError", 2, "did you mean total?")
    assert failure.message == "column totl does not exist (hint: did you mean total?)"
    code = "try:\n    await db_query('q')\nexcept DatabaseError as e:\n    seen = [e.reason, e.sqlstate, e.position, e.line, e.nearest, e.hint, isinstance(e, ReadOnlyError)]\nseen"
    assert run(code).ok == ["unknown-column", "42703", 8, 1, "total", "did you mean total?", False]


@pytest.mark.parametrize("helper", ["db_query", "db_frame"])
def test_an_error_after_rows_voids_them(run, helper):
    run.channel.answers(a=("int", [1, 2, 3, 4, 5]))
    run.channel.refusal, run.channel.refuses_late = {**REFUSAL, "reason": "division-by-zero"}, True
    code = f"seen = None\ntry:\n    seen = {helper}('q')\nexcept DatabaseError as e:\n    reason = e.reason\n[seen, reason]"
    assert run(code).ok == [None, "division-by-zero"]


def test_result_without_columns(run):
    run.channel.count = 5
    assert run("[db_query('q'), db_frame('q').shape]").ok == [[{}] * 5, [5, 0]]


def test_read_only_error(run):
    run.channel.refusal = {"reason": "read-only", "message": "UPDATE writes; db_query only reads"}
    failure = run("await db_query('UPDATE t SET x = 1')").failure
    assert (failure.type, failure.message) == ("ReadOnlyError", "UPDATE writes; db_query only reads")
    assert run("try:\n    db_query('x')\nexcept DatabaseError as e:\n    r = e.reason\nr").ok == "read-only"


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        ("None", {}),
        ("{'a': 1, 'b': 'x', 'c': None, 'd': True, 'e': 1.5}", {"a": 1, "b": "x", "c": None, "d": True, "e": 1.5}),
        ("{'a': [1, (2,)], 'b': {'k': 1}}", {"a": [1, [2]], "b": {"k": 1}}),
        ("{'a': float('inf'), 'b': float('nan')}", {"a": ("Infinity", "float8"), "b": ("NaN", "float8")}),
        ("{'a': datetime(2024, 1, 2, tzinfo=timezone.utc)}", {"a": ("2024-01-02T00:00:00+00:00", "timestamptz")}),
        ("{'a': timedelta(days=1, seconds=2)}", {"a": ("1 days 2 seconds 0 microseconds", "interval")}),
        ("{'a': b'\\x01\\xff', 'b': bytearray(b'x')}", {"a": ("\\x01ff", "bytea"), "b": ("\\x78", "bytea")}),
        (
            "{'a': __import__('decimal').Decimal('1.10'), 'b': __import__('uuid').UUID(int=1)}",
            {"a": ("1.10", "numeric"), "b": ("00000000-0000-0000-0000-000000000001", "uuid")},
        ),
        (
            "{'a': __import__('numpy').int64(3), 'b': __import__('numpy').array([1, 2]), 'c': __import__('numpy').float64(2)}",
            {"a": 3, "b": [1, 2], "c": 2.0},
        ),
        (
            "{'a': __import__('pandas').Timestamp('2024-01-02'), 'b': __import__('pandas').NaT, 'c': __import__('pandas').Series(['x'])}",
            {"a": ("2024-01-02T00:00:00", "timestamp"), "b": None, "c": ["x"]},
        ),
        (
            "{'a': __import__('numpy').datetime64('2024-01-02'), 'b': __import__('numpy').bool_(True)}",
            {"a": ("2024-01-02", "date"), "b": True},
        ),
        (
            "{'a': __import__('numpy').array(['2024-01-02T03', 'NaT'], 'M8[ns]')}",
            {"a": (["2024-01-02T03:00:00", None], "timestamp")},
        ),
        ("{'a': __import__('numpy').timedelta64(5, 'ns')}", {"a": ("0 days 0 seconds 0 microseconds", "interval")}),
        (
            "{'a': [1, float('nan')], 'b': [True, None], 'c': [__import__('decimal').Decimal(1), 2]}",
            {"a": ([1, "NaN"], "float8"), "b": [True, None], "c": (["1", 2], "numeric")},
        ),
        ("{'a': [datetime(2024, 1, 2).date(), None], 'b': []}", {"a": (["2024-01-02", None], "date"), "b": []}),
        (
            "{'a': Range(1, 5), 'b': Range(None, 2**40), 'c': Range(empty=True)}",
            {"a": ('["1","5")', "int4range"), "b": ('[,"1099511627776")', "int8range"), "c": "empty"},
        ),
        (
            "{'a': __import__('ipaddress').ip_address('::1'), 'b': __import__('ipaddress').ip_network('10.0.0.0/8')}",
            {"a": ("::1", "inet"), "b": ("10.0.0.0/8", "cidr")},
        ),
        ("{'a': 2 ** 70}", {"a": 2**70}),
    ],
)
def test_parameters(run, params, sent):
    run.channel.answers(a=("int", [1]))
    run(f"await db_query('select :a', {params})").ok
    plain = {k: v[0] if isinstance(v, tuple) else v for k, v in sent.items()}
    types = {k: v[1] for k, v in sent.items() if isinstance(v, tuple)}
    assert run.channel.asked[-1] == ["select :a", plain, types]


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        ("db_query(5)", "TypeError", "as a str"),
        ("db_query('q', [1])", "TypeError", "as a dict"),
        ("db_query('q', {'a': object()})", "TypeError", "object has no PostgreSQL type"),
        ("db_query('q', {'a': '\\ud800'})", "ValueError", "surrogate"),
        ("db_query('q' * 1_000_000)", "ValueError", "smaller parts"),
        ("db_query('q', {'a': ['é' * 100_000] * 3})", "ValueError", "smaller parts"),
    ],
)
def test_bad_calls_never_leave_the_sandbox(run, call, kind, says):
    failure = run(call).failure
    assert (failure.type, says in failure.message, run.channel.asked) == (kind, True, [])


def test_tables_schema_and_history(run):
    assert run(
        "[await db_tables(), db_tables(), (await db_schema('users'))[0]['column_name'], get_execution_history()[0]['execution_id'], await get_execution_history()]"
    ).ok == [["orders", "users"], ["orders", "users"], "id", "e1", [{"execution_id": "e1", "status": "completed"}]]
    failure = run("await db_schema('user')").failure
    assert (failure.type, failure.hint) == ("DatabaseError", "did you mean users?")


def test_explain(run):
    run.channel.answers(
        **{"QUERY PLAN": ("json", ['[{"Plan": {"Node Type": "Result", "Total Cost": 0.5, "Plan Rows": 7}}]'])}
    )
    assert run(
        "e = await db_explain('select :a', {'a': 1})\n[e['total_cost'], e['rows'], e['plan']['Node Type']]"
    ).ok == [0.5, 7, "Result"]
    assert run.channel.asked[-1] == ["EXPLAIN (FORMAT JSON) select :a", {"a": 1}, {}]
    run.channel.refusal = {**REFUSAL, "position": 30}
    assert run("try:\n    db_explain('select totl')\nexcept DatabaseError as e:\n    at = e.position\nat").ok == 8


def test_many_rows_are_quick(run):
    import time

    n = run.channel.part = 100_000
    run.channel.answers(**{f"c{i}": ("int", list(range(n))) for i in range(5)})
    began = time.process_time()
    assert run("len(await db_query('q'))").ok == n
    assert time.process_time() - began < 2


# -- notes


def test_debug(run):
    run(
        "def work():\n    debug('half way', level='warning', data={'n': 1, 'bad': float('nan')})\ndebug('begun')\nwork()"
    ).ok
    first, second = run.channel.notes
    assert (first["level"], first["message"], first["line"], first["function"], "data" in first) == (
        "INFO",
        "begun",
        3,
        "<module>",
        False,
    )
    assert (second["level"], second["function"], second["data"]) == (
        "WARNING",
        "work",
        {"n": 1, "bad": {"type": "float", "repr": "nan"}},
    )


def test_inspect_var(run):
    assert run("inspect_var('rows', [1, 2])").ok == [1, 2]
    run(
        "import numpy as np\ninspect_var('a', np.zeros(1000))\nclass C:\n    def __repr__(self): raise ValueError\n    def __sizeof__(self): raise ValueError\ninspect_var('c', C())\n1"
    ).ok
    rows, array, odd = run.channel.notes
    assert (rows["name"], rows["type"], rows["repr"], rows["size"] > 0) == ("rows", "list", "[1, 2]", True)
    assert (array["type"], array["size"]) == ("numpy.ndarray", 8000)
    assert (odd["type"], odd["size"], "raised ValueError" in odd["repr"]) == ("C", 0, True)


@pytest.mark.parametrize(
    "call",
    [
        "debug('x' * 10_000_000)",
        "debug('\\ud800' * 9999, data='\\ud800' * 999)",
        "debug(1, data=list(range(10**6)))",
        "inspect_var('n' * 10**6, '\U0001f600' * 10**6)",
        "debug('x', data={'a': ['\U0001f600' * 40_000] * 50})",
        "debug('x', data=1 << 100_000)",
        "exec('def ' + 'f' * 100_000 + '(): debug(1)\\n' + 'f' * 100_000 + '()')",
    ],
)
def test_notes_are_bounded(run, call):
    assert run(call + "\n1").ok == 1
    assert len(json.dumps(run.channel.notes)) < 1 << 19


def test_debug_info(run):
    run("debug('a')\ndebug('b', level='ERROR')\ninspect_var('x', 1)")
    info = run("get_debug_info()").ok
    assert (info["total_logs"], info["log_levels"], info["tracked_variables"], info["variable_names"]) == (
        2,
        {"INFO": 1, "ERROR": 1},
        1,
        ["x"],
    )
    assert [(note["message"], note["line"]) for note in info["recent_logs"]] == [("a", 1), ("b", 2)]


def test_sandbox_state(run):
    run("x = 5")
    state = run("[get_sandbox_state(), await get_sandbox_state()]").ok
    for each in state:
        assert each["variables"]["x"] == {"type": "int", "repr": "5"}
        assert each["usage"]["cpu_seconds"] > 0


@pytest.mark.parametrize(
    "call",
    [
        'db_query("q", {}, "sales")',
        'db_query("q", database="sales")',
        'db_frame("q", database="sales")',
        'db_explain("q", database="sales")',
        'db_tables("sales")',
        'db_schema("users", database="sales")',
    ],
)
def test_helpers_name_a_database(run, call):
    run.channel.answers(plan=("json", ['[{"Plan": {"Total Cost": 1, "Plan Rows": 2}}]']))
    assert run(f"{call}\nNone").exception is None
    other = call.replace('"sales"', "None")
    assert run(f"{other}\nNone").exception is None
    assert run.channel.databases == ["sales", ""]
    for value, error in (("7", "TypeError"), ("'x' * 10_001", "ValueError"), ("'\\ud800'", "ValueError")):
        failed = run(call.replace('"sales"', value)).exception
        assert failed["type"] == error and "database" in failed["message"]
    assert len(run.channel.databases) == 2


STAGES = {
    "text": "Statement, 1 line, 2 rows.",
    "blocks": [
        {
            "kind": "main",
            "stages": [
                {"text": "orders o", "from_line": 1, "state": "counted", "rows_out": 9, "kind": "from"},
                {"text": "o.x <  3", "from_line": 2, "state": "counted", "rows_in": 9, "rows_out": 2, "lost": 7},
                {"text": "LIMIT 5", "from_line": 3, "state": "skipped", "reason": "over-budget"},
            ],
        }
    ],
    "findings": [{"line": 2, "score": 92, "text": "it <removes> 7 rows"}],
}


def test_explain_runs_the_statement_once_and_only_if_its_stages_are_read(run):
    answer = ("json", ['[{"Plan": {"Node Type": "Result", "Total Cost": 0.5, "Plan Rows": 7}}]'])
    run.channel.answers(**{"QUERY PLAN": answer})
    run.channel.stages_answer = STAGES
    code = "e = {} db_explain('select :a', {{'a': 1}}, database='sales')\n[e['rows'], repr(e)[:13], len(e)]"
    assert run(code.format("")).ok == [7, "{'total_cost'", 3]
    assert run.channel.staged == []
    read = "[e.text, len(e.blocks), e.findings[0]['score'], str(e)]"
    assert run(read).ok == [STAGES["text"], 1, 92, STAGES["text"]]
    assert [each[:3] for each in run.channel.staged] == [["sales", "select :a", {"a": 1}]]
    page = run("e._repr_html_()").ok
    for part in ("orders o", "o.x &lt; 3", "<td>7</td>", "over-budget", "it &lt;removes&gt; 7 rows"):
        assert part in page
    assert run(code.format("await") + "\ne.text").ok == STAGES["text"]
    assert len(run.channel.staged) == 2
    assert run("import copy, pickle\ntype(copy.copy(e)) is dict and pickle.loads(pickle.dumps(e)) == e").ok


def test_explain_shows_why_there_are_no_stages(run):
    answer = ("json", ['[{"Plan": {"Node Type": "Result", "Total Cost": 0.5, "Plan Rows": 7}}]'])
    run.channel.answers(**{"QUERY PLAN": answer})
    run.channel.stages_answer = None
    assert run("e = db_explain('select random()')\n[str(e).split('\\n')[0], e._repr_html_()]").ok == [
        "it is <volatile>", "<p>it is &lt;volatile&gt;</p>",
    ]  # fmt: skip
    failure = run("e.text").failure
    assert (failure.type, str(failure.message)) == ("DatabaseError", "it is <volatile>")


@pytest.mark.parametrize("width", [1, 2, 15, 16])
def test_many_rows_have_the_names_of_their_columns(run, width):
    names = ["{a}", "it's", 'say "x"', "\\", "new\nline", "names", "é", ""]
    names = (names + ["v0", "lambda", "rows", "1", "$", "{{", "%s", "last"])[:width]
    values = [[None if i == 7 else width * i + j for i in range(1500)] for j in range(width)]
    run.channel.answers(**{name: ("int", column) for name, column in zip(names, values)})
    context = {"names": names, "values": values}
    expected = "expected = [dict(zip(context['names'], row)) for row in zip(*context['values'])]\n"
    code = expected + "rows = db_query('q', {})\nlen(rows), rows == expected, list(rows[-1]) == context['names']"
    assert run(code, context=context).ok == [1500, True, True]
