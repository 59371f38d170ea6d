"""Checks commit messages, the length of lines, the length of the pages' functions, and the prose.

    lint.py messages    commit messages since the base revision
    lint.py functions   functions over 150 lines in web/src
    lint.py prose       words that have a plainer form, listed in HABITS
    lint.py lines       lines over 120 columns in Go, Python and C, over 100 in Markdown prose
    lint.py budget      writes scripts/archtest/long_lines.txt anew, from today's lines

The base revision is in scripts/archtest/lint_base; GLASSHOUSE_LINT_BASE names another. A history
without that revision, as in a shallow clone, is not checked.

long_lines.txt has the number of overlong lines that a folder may still have. The numbers only go
down: over the number, the check fails and shows the overlong lines that are new since the base.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "scripts" / "archtest"
COLUMNS = {".go": 120, ".py": 120, ".c": 120, ".h": 120, ".md": 100}
TAB = 4
NOT_IMPERATIVE = re.compile(r"[^:]+: (?!(?:embed|need|feed|bring|string)\b)(?:\w+ed|\w+ing|an?|the)\b")
SUBJECT = 72
FUNCTION_LINES = 150
WITH_BODY = 0.6  # the share of commits whose message has a body that says why
PROSE = {".go", ".py", ".ts", ".tsx", ".c", ".h", ".md"}

# Constructions that a reader has to read twice, each with its plain form.
_BE, _START = "(?:is|are|was|were)", r"(?:^\s*|[.;:] |// |# )"
_AUXILIARY = "(?:does|do|did|is|are|was|were|can|may|has|have|will)"
HABITS = [
    (re.compile(rf"(?<![Tt]here )\b{_BE} no (?!longer\b|more\b)"), "is not a ..."),
    (re.compile(r"\b[Bb]eside\b"), "besides, in addition to, next to, while another user ..."),
    (re.compile(r"\balso (?:if|when|where|while|though)\b"), "even if, even where"),
    (re.compile(rf"{_START}(?:Not|Nor|Neither|Never|Only|So|As) {_AUXILIARY}\b"), "subject, verb, object"),
    (re.compile(rf"(?:^\s*|[.] |// |# )Not (?!all\b|every\b)\w+(?: \w+){{0,3}} {_BE} "), "subject, verb, object"),
]


def git(*arguments: str) -> str:
    """Return the output of a git command in the repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def base() -> str:
    """Return the base revision, or "" if the history does not contain it."""
    name = os.environ.get("GLASSHOUSE_LINT_BASE") or (HERE / "lint_base").read_text().split()[0]
    known = subprocess.run(["git", "merge-base", "--is-ancestor", name, "HEAD"], cwd=ROOT, capture_output=True)
    return name if known.returncode == 0 else ""


def check_messages() -> list[str]:
    """Return the problems of the commit messages since the base revision."""
    start = base()
    if not start:
        print("lint: the base revision is not in this history; commit messages are not checked")
        return []
    problems, total, with_body = [], 0, 0
    for record in git("log", "--no-merges", "--format=%h%x00%s%x00%b%x01", f"{start}..HEAD").split("\x01")[:-1]:
        commit, subject, body = record.lstrip("\n").split("\0")
        total += 1
        with_body += bool(body.strip())
        if len(subject) > SUBJECT:
            problems.append(f"{commit}: the subject has {len(subject)} characters, want at most {SUBJECT}: {subject}")
        if not re.match(r"[A-Za-z0-9_./,* -]+: \S", subject):
            problems.append(f"{commit}: the subject is not `area: do this`: {subject}")
        elif NOT_IMPERATIVE.match(subject):
            problems.append(f"{commit}: the subject is not an imperative (`area: do this`): {subject}")
    if total >= 5 and with_body < WITH_BODY * total:
        problems.append(f"{with_body} of {total} commits have a body, want {WITH_BODY:.0%}: say why")
    return problems


def too_long(path: str, lines: list[str]) -> list[tuple[int, int]]:
    """Return the number and width of each overlong line. In Markdown, code and tables are excepted."""
    suffix = pathlib.Path(path).suffix
    limit, found, code = COLUMNS[suffix], [], False
    for number, line in enumerate(lines, 1):
        if suffix == ".md":
            if line.lstrip().startswith(("```", "~~~")):
                code = not code
            if code or line.lstrip().startswith("|"):
                continue
            line = re.sub(r"\]\([^)]*\)|https?://\S+", "", line)
        width = len(line.expandtabs(TAB))
        if width > limit:
            found.append((number, width))
    return found


def long_lines() -> dict[str, list[tuple[str, int, int]]]:
    """Return the overlong lines of the repository by folder: path, line, width."""
    found: dict[str, list[tuple[str, int, int]]] = collections.defaultdict(list)
    for path in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        file = ROOT / path
        if file.suffix not in COLUMNS or not file.is_file() or "/testdata/" in path:
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        if "DO NOT EDIT" in text[:500]:
            continue
        found[folder_of(path)] += [(path, *place) for place in too_long(path, text.splitlines())]
    return {folder: lines for folder, lines in found.items() if lines}


def folder_of(path: str) -> str:
    """Return the key of long_lines.txt for a path: the top folder, so that files may move below it."""
    parts = pathlib.PurePath(path).parts
    return parts[0] if len(parts) > 1 else "."


def added_since(start: str, folder: str) -> set[tuple[str, int]]:
    """Return the lines of a folder that are new since a revision."""
    added, path, number = set(), "", 0
    for line in git("diff", "-U0", "--no-color", start, "--", folder).splitlines():
        if line.startswith("+++ b/"):
            path = line[6:]
        elif match := re.match(r"@@ -\S+ \+(\d+)", line):
            number = int(match[1])
        elif line.startswith("+"):
            added.add((path, number))
            number += 1
    return added


def check_lines() -> list[str]:
    """Return the overlong lines of each folder that has more of them than it may have."""
    budget = {}
    for text in (HERE / "long_lines.txt").read_text().splitlines():
        if text and not text.startswith("#"):
            number, folder = text.split()
            budget[folder] = int(number)
    problems, found, start = [], long_lines(), base()
    for folder in sorted(found):
        have, allowed = len(found[folder]), budget.get(folder, 0)
        if have <= allowed:
            continue
        new = added_since(start, folder) if start else set()
        for path, line, width in [entry for entry in found[folder] if entry[:2] in new] or found[folder]:
            limit = COLUMNS[pathlib.Path(path).suffix]
            problems.append(f"{path}:{line}: {width} columns, want at most {limit}")
        problems.append(f"{folder} has {have} overlong lines, want at most {allowed}")
    fewer = sum(max(0, allowed - len(found.get(folder, []))) for folder, allowed in budget.items())
    if fewer and not problems:
        print(f"lint: {fewer} overlong lines fewer than long_lines.txt allows; `lint.py budget` lowers the numbers")
    return problems


def long_functions(text: str) -> list[tuple[str, int]]:
    """Return the name and length of each overlong function of a formatted TypeScript file, nested ones excepted."""
    found, name, begin = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"(?:export )?(?:default )?(?:async )?(?:function\*? |const (?=.*=>))(\w+)", line):
            name, begin = match[1], number
        if name and line in ("}", "};"):
            if number - begin + 1 > FUNCTION_LINES:
                found.append((name, number - begin + 1))
            name = ""
    return found


def check_functions() -> list[str]:
    """Return the overlong functions of the pages. A component is a function."""
    problems = []
    for path in git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "web/src/*.ts*").split("\0"):
        if not (ROOT / path).is_file():
            continue
        for name, lines in long_functions((ROOT / path).read_text(encoding="utf-8")):
            problems.append(
                f"{path}: {name} has {lines} lines, want at most {FUNCTION_LINES}: "
                "make a hook of a part of its state, or a component of a part of the page"
            )
    return problems


def prose_of(path: str) -> bool:
    """Return whether `lint.py prose` reads the file with this path. It reads scripts without a suffix too."""
    file = pathlib.PurePath(path)
    if "testdata" in file.parts or path.startswith("web/dist/") or path == "scripts/archtest/lint.py":
        return False
    return file.suffix in PROSE or (not file.suffix and path.startswith(("scripts/", ".ci/")))


def habits_in(line: str) -> list[tuple[str, str]]:
    """Return the words of a line that have a plainer form, each with that form."""
    return [(found[0].strip(" \t.;:/#"), plain) for pattern, plain in HABITS for found in pattern.finditer(line)]


def check_prose() -> list[str]:
    """Return the places in the repository whose words have a plainer form."""
    problems = []
    for path in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        file = ROOT / path
        if not prose_of(path) or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        if "DO NOT EDIT" in text[:500]:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            problems += [f"{path}:{number}: {words!r}: write {plain}" for words, plain in habits_in(line)]
    return problems


def write_budget() -> None:
    """Write long_lines.txt from today's lines."""
    text = "# Overlong lines that a folder may still have. The numbers only go down: `lint.py budget` writes them.\n"
    text += "".join(f"{len(lines):5} {folder}\n" for folder, lines in sorted(long_lines().items()))
    (HERE / "long_lines.txt").write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["budget"]:
        write_budget()
        sys.exit()
    checks = {"messages": check_messages, "lines": check_lines, "functions": check_functions, "prose": check_prose}
    problems = checks[sys.argv[1]]()
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))
