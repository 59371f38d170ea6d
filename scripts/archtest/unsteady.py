"""Reads scripts/unsteady.txt, the list of unsteady tests: tests that failed, and passed when run again.

    unsteady.py [FILE]   exits with 1 and says why if the list has a mistake

A line of the list has the name of a test, the date on which it was added, and what may be the cause. A line may stand
for a week, so that nobody gets used to it.
"""

import datetime
import pathlib
import re
import sys

FILE = pathlib.Path(__file__).parents[1] / "unsteady.txt"
MAX_AGE = datetime.timedelta(days=7)
FORMAT = "PACKAGE.TEST YYYY-MM-DD SUSPICION"
EXAMPLE = "service/httpapi.TestSignIn 2026-03-14 expects two events in one order"
LINE = re.compile(r"([\w./-]+\.Test\w*)\s+(\d{4}-\d\d-\d\d)\s+(\S.*)")


def name_of(package: str, test: str) -> str:
    """Return the name of a test in the list."""
    return f"{package.removeprefix('glasshouse/')}.{test}"


def read(file: pathlib.Path | str) -> tuple[dict[str, str], list[str]]:
    """Return the lines of the list by the name of the test, and the mistakes in the list, for which the gate fails."""
    listed, mistakes = {}, []
    today = datetime.datetime.now(datetime.UTC).date()
    for number, text in enumerate(pathlib.Path(file).read_text(encoding="utf-8").splitlines(), 1):
        text = text.strip()
        if not text or text.startswith("#"):
            continue
        try:
            name, day, _ = LINE.fullmatch(text).groups()  # type: ignore[union-attr] # no match is a mistake as well
            age = today - datetime.date.fromisoformat(day)
        except (AttributeError, ValueError):
            mistakes.append(
                f"scripts/unsteady.txt, line {number}: got {text!r}, want {FORMAT}: write it like {EXAMPLE!r}"
            )
            continue
        listed[name] = text
        if age < datetime.timedelta(days=-1):  # tomorrow has begun in other time zones
            mistakes.append(f"scripts/unsteady.txt, line {number}: {day} is in the future: write the date of today")
        elif age > MAX_AGE:
            mistakes.append(
                f"scripts/unsteady.txt, line {number}: {name} has stood there for {age.days} days, and "
                f"{MAX_AGE.days} are allowed: mend its cause and remove the line"
            )
    return listed, mistakes


def verdict(name: str, listed: dict[str, str]) -> str:
    """Return the line of the report about an unsteady test."""
    if name in listed:
        return listed[name]
    return f"{name} is not in scripts/unsteady.txt: mend its cause, or add a line {FORMAT} and mend it within a week"


def main() -> int:
    """Print the mistakes of the list and return the exit status."""
    _, mistakes = read(sys.argv[1] if len(sys.argv) > 1 else FILE)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return int(bool(mistakes))


if __name__ == "__main__":
    sys.exit(main())
