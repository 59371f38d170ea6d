"""Prints a report of the gate's test groups.

    report.py GROUPS [LIST]     prints the whole report; exits with 1 if the gate fails, and with 3 if it passes
                                with unsteady tests, all of which LIST has (default scripts/unsteady.txt)
    report.py --line KIND LOG   prints one line of counts for one group
    report.py --again LOG       prints what to run again of a failed Go group: an expression that matches
                                its tests and, on the next line, their packages

GROUPS is a file with a line for each group: name, kind, exit status, seconds and log, separated by
tabs. The kinds are "go" (the log is the output of `go test -json`), "pytest" (pytest's output), "tap" (lines of
the Test Anything Protocol) and "command" (a check with an exit status). Status 3 of the last two says that it could
not run.

If at most three tests of a Go group fail, and none of them crashes, scripts/test runs these tests once more, as the
group "NAME, again". If they pass then, the group counts as good, and the report begins with their names and with what
they printed the first time. unsteady.py reads LIST.

The report has failures first, then the tests that were not run with the reasons, the lines that tests printed
after "report: ", the slowest tests, and a table of the groups. A line "report: not tested, because ..." counts as a
test that was not run.
"""

import collections
import dataclasses
import json
import re
import sys

import unsteady


@dataclasses.dataclass
class Group:
    """One group's results."""

    name: str
    seconds: float = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    good: bool = True
    failures: list[str] = dataclasses.field(default_factory=list)
    unsteady: list[str] = dataclasses.field(default_factory=list)  # failures of tests that passed when run again
    names: set[str] = dataclasses.field(default_factory=set)  # of failed tests, later of unsteady ones, as in LIST
    ended_well: set[str] = dataclasses.field(default_factory=set)  # names of tests that passed
    crashed: bool = False  # a data race, a panic, a fatal error or a timeout: no second run excuses it
    not_run: list[str] = dataclasses.field(default_factory=list)
    reports: list[str] = dataclasses.field(default_factory=list)
    times: list[tuple[float, str]] = dataclasses.field(default_factory=list)

    def line(self) -> str:
        """Return the counts as text."""
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")

    def mark(self, test: str, output: list[str]) -> None:
        """Add the lines that a test printed after "report: ". One that begins with "not tested" counts as skipped."""
        for text in output:
            _, found, report = text.partition("report: ")
            if report.startswith("not tested"):
                self.not_run.append(f"{test}: {report}")
                self.skipped += 1
            elif found:
                self.reports.append(f"{test}: {report}")


def read_go(group: Group, lines: list[str]) -> None:
    """Read the events of `go test -json`."""
    output: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    ended: dict[tuple[str, str], str] = {}
    begun: list[tuple[str, str]] = []
    broken: list[str] = []
    for raw in lines:
        try:
            event = json.loads(raw)
        except ValueError:  # the compiler's messages
            broken.append(raw)
            continue
        key = (event.get("Package") or event.get("ImportPath", ""), event.get("Test", ""))
        action = event["Action"]
        if action in ("output", "build-output"):
            output[key].append(event["Output"].rstrip())
        elif action == "run":
            begun.append(key)
        elif action in ("pass", "fail", "skip"):
            ended[key] = action
            if key[1] and "/" not in key[1]:
                group.times.append((event.get("Elapsed", 0), f"{key[0]} {key[1]}"))
        elif action == "build-fail":
            ended[key] = "fail"
    # A package that ran out of time reports it in the output of the test that was running.
    for key in begun:
        ended.setdefault(key, "fail")
    for key, how in ended.items():
        package, test = key
        if test and "/" not in test:
            {"fail": group.names, "pass": group.ended_well}.get(how, set()).add(unsteady.name_of(package, test))
        if how == "fail":
            group.failures += [f"--- FAIL {package} {test}".rstrip(), *output[key]]
            group.good = False
        elif how == "skip" and test:
            texts = (text for text in output[key] if not text.lstrip().startswith(("===", "---")))
            reason = next(texts, "no reason given")
            group.not_run.append(f"{package} {test}: {reason.strip()}")
        group.mark(f"{package} {test}", output[key])
    if group.failures or not ended:
        group.failures += broken
    failed = {key for key, how in ended.items() if how == "fail"}
    group.crashed = any(crashes(text, key in failed) for key, texts in output.items() for text in texts)
    counts = collections.Counter(how for (_, test), how in ended.items() if test)
    group.passed, group.failed = counts["pass"], counts["fail"]
    group.skipped += counts["skip"]
    if not group.good and not group.failed:
        group.failed = 1  # a package that did not build or broke off outside of a test


# What the race detector and Go's runtime print. It stands among the output of any test that runs at the same time.
CRASH = re.compile(
    r"WARNING: DATA RACE|race detected during execution of test|test timed out after|^(panic|fatal error): "
)
# The same of another program, in what a failed test says about it.
QUOTED_CRASH = re.compile(r"\b(panic|fatal error): ")


def crashes(text: str, failed: bool) -> bool:
    """Report whether a line of a test, which may have failed, tells of a data race, a panic, a fatal error or a
    timeout."""
    return bool(CRASH.search(text) or (failed and QUOTED_CRASH.search(text)))


MAX_AGAIN = 3  # tests of a group; if more fail, something is wrong with all of them


def again(lines: list[str]) -> list[str]:
    """Return the expression and the packages of the failed tests, or nothing if other things failed as well or if a
    test crashed."""
    group = Group("")
    read_go(group, lines)
    tests: dict[str, set[str]] = collections.defaultdict(set)  # by package
    packages: set[str] = set()
    running: set[tuple[str, str]] = set()
    for raw in lines:
        try:
            event = json.loads(raw)
        except ValueError:
            return []  # the compiler's messages
        package, test, action = event.get("Package", ""), event.get("Test", ""), event["Action"]
        if action == "run":
            running.add((package, test))
        elif action in ("pass", "fail", "skip"):
            running.discard((package, test))
        if action == "fail" and test:
            tests[package].add(test.split("/")[0])
        elif action in ("fail", "build-fail"):
            packages.add(package)
    count = sum(len(names) for names in tests.values())
    if group.crashed or running or not packages or packages != set(tests) or count > MAX_AGAIN:
        return []
    return ["^(" + "|".join(sorted(set().union(*tests.values()))) + ")$", " ".join(sorted(packages))]


def forgive(groups: list[Group]) -> None:
    """Count groups as good whose failed tests all passed when they were run again."""
    by_name = {group.name: group for group in groups}
    for group in groups:
        repeated = by_name.get(f"{group.name}, again")
        if not group.good and repeated and repeated.good and not group.crashed and group.names <= repeated.ended_well:
            group.good, group.failed = True, 0
            group.unsteady, group.failures = group.failures, []


def read_pytest(group: Group, lines: list[str]) -> None:
    """Read pytest's output with -ra."""
    group.mark(group.name, lines)
    last = next((text for text in reversed(lines) if re.search(r"\d+ (passed|failed|error|skipped)", text)), "")
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error|skipped|deselected)", last)}
    group.passed = counts.get("passed", 0)
    group.skipped += counts.get("skipped", 0)
    group.failed = counts.get("failed", 0) + counts.get("error", 0)
    group.not_run += [text for text in lines if text.startswith("SKIPPED ")]
    # What is printed while the interpreter ends comes after pytest's last line, and hides the failures.
    if group.failed and last:
        end = len(lines) - lines[::-1].index(last)
        group.failures = [f"--- FAIL {group.name}", *lines[max(0, end - 200) : end]]
    if count := counts.get("deselected"):
        group.not_run.append(
            f"{group.name}: {count} tests with the mark of a later tier (long: whole, nightly: nightly)"
        )


def read_tap(group: Group, lines: list[str]) -> None:
    """Read lines "ok NAME" and "not ok NAME"; the lines after the second that begin with # are its output."""
    in_failure = False
    for text in lines:
        if text.startswith("not ok "):
            group.failed += 1
            group.failures.append(f"--- FAIL {group.name}: {text.removeprefix('not ok ')}")
        elif text.startswith("ok "):
            group.passed += 1
        elif in_failure and text.startswith("#"):
            group.failures.append(text)
        in_failure = text.startswith("not ok ") or (in_failure and text.startswith("#"))
    group.mark(group.name, lines)


def read(name: str, kind: str, status: int, seconds: float, log: str) -> Group:
    """Return a group's results."""
    group = Group(name, seconds)
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    if kind == "go":
        read_go(group, lines)
    elif kind == "pytest":
        read_pytest(group, lines)
    elif status == 3:
        group.skipped = 1
        reason = next((text for text in reversed(lines) if "not run: " in text), "not run: no reason given")
        group.not_run.append(f"{name}: {reason.split('not run: ', 1)[1]}")
        return group
    elif kind == "tap":
        read_tap(group, lines)
    else:
        group.passed, group.failed = int(status == 0), int(status != 0)
    if status != 0:
        group.good = False
        group.failed = group.failed or 1
        if not group.failures:
            group.failures = [f"--- FAIL {name}", *lines[-200:]]
    return group


def main() -> int:
    """Print the report and return the exit status."""
    if sys.argv[1] == "--line":
        print(read("", sys.argv[2], 0, 0, sys.argv[3]).line())
        return 0
    if sys.argv[1] == "--again":
        with open(sys.argv[2], encoding="utf-8", errors="replace") as file:
            print("\n".join(again(file.read().splitlines())))
        return 0
    listed, mistakes = unsteady.read(sys.argv[2] if len(sys.argv) > 2 else unsteady.FILE)
    groups = []
    with open(sys.argv[1], encoding="utf-8") as file:
        for text in file:
            name, kind, status, seconds, log = text.rstrip("\n").split("\t")
            groups.append(read(name, kind, int(status), float(seconds), log))
    forgive(groups)
    names = sorted(set().union(*(group.names for group in groups if group.unsteady)))
    print_report(groups, [*mistakes, *(unsteady.verdict(name, listed) for name in names)])
    if not all(group.good for group in groups) or not any(group.passed for group in groups):
        return 1
    if mistakes or any(name not in listed for name in names):
        return 1
    return 3 if names else 0


def print_report(groups: list[Group], steadiness: list[str]) -> None:
    """Print the report, which begins with the unsteady tests and the mistakes of their list."""
    if steadiness:
        print("\nUNSTEADY\n" + "\n".join(f"  {text}" for text in steadiness))
    titles = (
        ("Failed, and passed when run again: a defect of the test or of the program", "unsteady"),
        ("Failures", "failures"),
        ("Not run", "not_run"),
        ("Measured by tests", "reports"),
    )
    for title, field in titles:
        lines = [text for group in groups for text in getattr(group, field)]
        if lines:
            print(
                f"\n{title}\n" + "\n".join(f"  {text}" if field in ("not_run", "reports") else text for text in lines)
            )
    slowest = sorted((entry for group in groups for entry in group.times), reverse=True)[:10]
    if slowest:
        print("\nSlowest tests\n" + "\n".join(f"  {seconds:6.1f} s  {test}" for seconds, test in slowest))
    print("\nGroups")
    for group in groups:
        state = "again" if group.unsteady else "ok" if group.good else "FAILED"
        print(f"  {group.name:24} {state:7} {group.seconds:6.0f} s  {group.line()}")
    total = [sum(getattr(group, field) for group in groups) for field in ("passed", "failed", "skipped")]
    count = sum(bool(group.unsteady) for group in groups)
    note = f"; groups with tests that passed only when run again: {count}" if count else ""
    print(f"\ntotal: {total[0]} passed, {total[1]} failed, {total[2]} skipped{note}")


if __name__ == "__main__":
    sys.exit(main())
