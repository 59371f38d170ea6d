"""db_frame returns columns with the dtypes of pandas."""

import pandas
import pytest
import rows

begin = rows.FrameResult.begin


def test_a_frame_has_the_right_types(run):
    run.channel.answers(
        i=("int", [1, 2]),
        n=("int", [1, None]),
        f=("float", [1.5, None]),
        b=("bool", [True, False]),
        m=("bool", [True, None]),
        t=("string", ["x", None]),
        d=("date", ["2024-01-02", None]),
        s=("timestamp", ["2024-01-02T03:04:05.000006", None]),
        z=("timestamptz", ["2024-01-02T03:04:05+00:00", None]),
        v=("timedelta", [[0, 1, 0], None]),
        c=("decimal", ["1.10", None]),
        u=("decimal", ["NaN", "-Infinity"]),
        p=("decimal[]", [["1.10"], None]),
        j=("json", ['{"a": 1}', None]),
        a=("int[]", [[1, 2], [3, 4]]),
        far=("timestamptz", ["infinity", "2024-01-02T03:04:05+00:00"]),
        old=("date", ["0044-03-15 BC", "2024-01-02"]),
    )
    assert run("frame = db_frame('q', {})\n{k: str(v) for k, v in frame.dtypes.items()}").ok == {
        "i": "int64",
        "n": "Int64",
        "f": "float64",
        "b": "bool",
        "m": "boolean",
        "t": "str" if pandas.__version__ >= "3" else "object",
        "d": "datetime64[s]",
        "s": "datetime64[us]",
        "z": "datetime64[us, UTC]",
        "v": "timedelta64[us]",
        "c": "float64",
        "u": "float64",
        "p": "object",
        "j": "object",
        "a": "object",
        "far": "object",
        "old": "object",
    }
    run("import pandas as pd, datetime as dt, decimal\nfirst, last = frame.iloc[0], frame.iloc[1]").ok
    assert run(
        "(first.s, first.z, first.v) == (pd.Timestamp('2024-01-02T03:04:05.000006'), pd.Timestamp('2024-01-02T03:04:05Z'), pd.Timedelta(days=1))"
    ).ok
    assert run(
        "(first.c, first.p, first.j, first.a, first.old) == "
        "(1.1, [decimal.Decimal('1.10')], {'a': 1}, [1, 2], '0044-03-15 BC')"
    ).ok
    assert run("(first.far, last.far) == ('infinity', datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc))").ok
    assert run("[k for k in frame if pd.isna(last[k]) is True]").ok == [
        "n",
        "f",
        "m",
        "t",
        "d",
        "s",
        "z",
        "v",
        "c",
        "p",
        "j",
    ]


def test_numeric_columns_of_an_exact_frame_are_decimals(run):
    run.channel.answers(a=("decimal", ["1.10", None, "123456789012345678901234567890"]), b=("float", [0.5, 1, 2]))
    assert run(
        "import decimal\nf = db_frame('q', exact=True)\nf.a.tolist() == [decimal.Decimal('1.10'), None, "
        "decimal.Decimal('123456789012345678901234567890')]"
    ).ok
    assert run("[str(t) for t in f.dtypes]").ok == ["object", "float64"]


@pytest.mark.parametrize(
    "code",
    [
        "await db_frame('q')",
        "db_frame('q')",
        "import asyncio\n(await asyncio.gather(db_frame('a'), db_frame('b')))[1]",
        "import pickle\npickle.loads(pickle.dumps(db_frame('q')))",
        "db_frame('q').copy()",
    ],
)
def test_a_frame_with_and_without_await(run, code):
    run.channel.answers(a=("int", [1, 2]), b=("string", ["x", None]))
    what = run(f"import pandas as pd\n{code}").ok
    assert (what["type"], what["shape"]) == ("DataFrame", [2, 2])


@pytest.mark.parametrize("arrow", [True, False])
def test_texts_of_a_frame(run, arrow, monkeypatch):
    """Texts are in the memory of Arrow or, without Arrow, of Python."""
    if not arrow:
        monkeypatch.setattr(
            rows.FrameResult, "begin", lambda self, columns: (setattr(self, "_texts", None), begin(self, columns))[1]
        )
    texts = ["", "x", None, "é\n\t", "\U0001f600" * 3, None, "last"]
    run.channel.answers(a=("string", texts), b=("text", texts[::-1]), c=("string", [None] * 7))
    if not arrow:
        run.channel.form = "frame"
    code = "f = db_frame('q')\nf['d'] = f.a + 'y'\nf.loc[0, 'a'] = 'new'\n[[None if x != x else x for x in f[k]] for k in 'abcd'], [str(t) for t in f.dtypes]"
    (a, b, c, d), types = run(code).ok
    assert (a, b, c) == (["new", *texts[1:]], texts[::-1], [None] * 7)
    assert d == [None if x is None else x + "y" for x in texts]
    assert set(types) == {"str" if pandas.__version__ >= "3" else "object"}


def test_a_frame_of_bytes_that_are_no_text(run):
    run.channel.answers(a=("string", ["x"]))
    run.channel.raw = ("a", b"\xff\xfe", b"", (2).to_bytes(4, "little"))
    assert run("db_frame('q')").failure.type in ("ArrowInvalid", "UnicodeDecodeError")


def test_awaited_frame_is_a_plain_dataframe(run):
    run.channel.answers(a=("int", [1]))
    assert (
        run(
            "import pandas as pd\ntype(await db_frame('q')) is pd.DataFrame and type(db_frame('q').head()) is pd.DataFrame"
        ).ok
        is True
    )


def test_a_frame_of_columns_of_one_name_and_of_no_rows(run):
    run.channel.columns = [{"name": n, "type": "int4", "kind": "int", "of": "", "array": False} for n in ("id", "id")]
    run.channel.data = [[], []]
    run.channel.truncated = True
    assert run("f = db_frame('q')\n[list(f), len(f), f.attrs['truncated'], str(f.dtypes['id_2'])]").ok == [
        ["id", "id_2"],
        0,
        True,
        "int64",
    ]
