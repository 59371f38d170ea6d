"""The code is found in a request of a client of a local code-execution server."""

import compat
import pytest

PRINT = "print('x')\n"


@pytest.mark.parametrize(
    "sent, code",
    [
        (PRINT, PRINT),
        ("", ""),
        ("await f()", "await f()"),
        ('{"generated_code": "print(1)"}', "print(1)"),
        ("{'generated_code': 'print(1)', 'timeout': 3}", "print(1)"),
        ("  {'generated_code': '''a = 1\nprint(a)'''}\n", "a = 1\nprint(a)"),
        ('{"generated_code": "```python\\nprint(1)\\n```"}', "print(1)\n"),
        ('{"generated_code": 3}', '{"generated_code": 3}'),
        ("{'generated_code': f()}", "{'generated_code': f()}"),
        ("{'a', 'generated_code'}", "{'a', 'generated_code'}"),
        ("```python\nprint('x')\n```", PRINT),
        ("```\nprint('x')\n```\n", PRINT),
        ("~~~py\nprint('x')\n~~~", PRINT),
        ("  ```Python3\nprint('x')\n  ```", PRINT),
        ("Do this:\n```python\na = 1\n```\nthen\n```\nprint(a)\n```", "a = 1\n\nprint(a)\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("s = '''\n```python\nno\n```\n'''", "s = '''\n```python\nno\n```\n'''"),
        ("`print(1)`", "print(1)"),
        ("```print(1)```", "print(1)"),
        ("python\nprint(1)", "python\nprint(1)"),  # it is valid Python
        ("```python\nprint(1)", "print(1)"),
        ("print('a\n", "print('a\n"),
        ("no code at all", "no code at all"),
        ("a\0b", "a\0b"),
        ("(" * 10_000, "(" * 10_000),
    ],
)
def test_code_is_found(sent, code):
    assert compat.extract_code(sent) == code
