import pytest


@pytest.mark.parametrize(
    ("code", "incomplete", "wrong"),
    [
        ("x = 42", False, False),
        ("", False, False),
        ("for i in range(3):", True, True),
        ("for i in range(3):\n    x", True, False),
        ("for i in range(3):\n    x\n", False, False),
        ("if 1: x", False, False),
        ("f(1,\n  2)", False, False),
        ("f(1,", True, True),
        ("x = [\n", True, True),
        ("s = '''abc", True, True),
        ("s = 'abc", False, True),
        ("def f(:", False, True),
        ("x = = 3", False, True),
        ("@decorator", True, True),
        ("try:\n    x", True, True),
        ("x = 1 + \\\n", True, True),
        ("await f()", False, False),
        ("%time f(1,", True, True),
        ("x)", False, True),
    ],
    ids=str,
)
def test_check_tells_whether_more_lines_can_follow(run, code, incomplete, wrong):
    answer = run.session.answer({"what": "check", "code": code})
    assert (answer.get("incomplete", False), bool(answer["problems"])) == (incomplete, wrong)
