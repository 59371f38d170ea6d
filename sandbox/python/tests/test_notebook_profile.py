import pytest


@pytest.mark.parametrize(
    "code, text",
    [
        ("1 + 1", "2"),
        ("'text'", "'text'"),
        ("(1, [2], {'a': None})", "(1, [2], {'a': None})"),
        ("True", "True"),
        ("[0] * 500", str([0] * 500)),
        ("'x' * 100_000", repr("x" * 100_000)),
        ("class Own:\n    def __repr__(self): return 'own'\nOwn()", "own"),
        ("'x' * 2_000_000", "'" + "x" * 999_996 + "..."),
    ],
)
def test_every_last_value_is_shown_with_its_whole_text(notebook, code, text):
    (output,) = notebook(code).outputs
    assert output["role"] == "result"
    assert output["data"] == {"text/plain": text}


@pytest.mark.parametrize("code", ["None", "x = 1", ""])
def test_nothing_is_shown_without_a_value(notebook, code):
    assert notebook(code).outputs == []


def test_display_shows_the_repr_of_a_string(notebook):
    assert [o["data"]["text/plain"] for o in notebook("display('a')").outputs] == ["'a'"]


def test_a_rich_value_keeps_its_other_representations(notebook):
    (output,) = notebook("import pandas as pd\npd.DataFrame({'a': [1]})").outputs
    assert {"text/html", "text/plain"} <= output["data"].keys()


@pytest.mark.parametrize("size, kept", [(100_000, True), (700_000, True), (2_000_000, False)])
def test_the_message_of_an_error_may_carry_a_value(notebook, size, kept):
    message = notebook(f"raise ValueError('x' * {size})").failure.message
    assert (message == "x" * size) is kept
    if not kept:
        assert message.endswith("...")


def test_the_json_of_a_message_is_bounded(notebook):
    assert len(notebook("raise ValueError('\\U0001f600' * 200_000)").failure.message) == 4000


def test_other_profiles_show_no_plain_value(run):
    assert run("1 + 1").outputs == []
    assert len(run("raise ValueError('x' * 100_000)").failure.message) == 4000


def test_input_says_what_to_do(run):
    failure = run("input('name?')").failure
    assert failure.type == "RuntimeError"
    assert "write the value into the code" in failure.message
