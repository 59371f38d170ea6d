"""Reads `go test -json` and prints what a person needs of it.

    gotest.py EVENTS SUMMARY

Prints the output of every test and package that failed or never ended, and each skip with its
reason, and each line that a test began with "report: "; writes one line of counts to SUMMARY. Exits with 1 where anything
failed or nothing ran.
"""

import collections
import json
import sys


def read(path: str) -> tuple[list[str], str, bool]:
    """Return the lines to print, the summary and whether all went well."""
    output: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    ended: dict[tuple[str, str], str] = {}
    begun: list[tuple[str, str]] = []
    lines: list[str] = []
    with open(path, encoding="utf-8", errors="replace") as events:
        for raw in events:
            try:
                event = json.loads(raw)
            except ValueError:  # a compiler's words
                lines.append(raw.rstrip())
                continue
            key = (event.get("Package") or event.get("ImportPath", ""), event.get("Test", ""))
            if event["Action"] in ("output", "build-output"):
                output[key].append(event["Output"].rstrip())
                if event["Output"].startswith("report: "):
                    lines.append(output[key][-1])
            elif event["Action"] == "run":
                begun.append(key)
            elif event["Action"] in ("pass", "fail", "skip"):
                ended[key] = event["Action"]
            elif event["Action"] == "build-fail":
                ended[key] = "fail"
    # A package that ran out of time says so in the output of the test it was at.
    for key in begun:
        if key not in ended:
            ended[key] = "fail"
    for key, how in ended.items():
        test = key[1]
        if how == "fail" or (how == "skip" and test):
            lines.append(f"--- {how} {key[0]} {test}")
            lines += output[key]
        elif how == "pass" and any(": report: " in line for line in output[key]):
            lines += [f"--- report {key[0]} {test}", *output[key]]
    counts = collections.Counter(how for (_, test), how in ended.items() if test)
    broken = sum(how == "fail" for (_, test), how in ended.items() if not test)
    summary = f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} could not run (skipped)"
    if broken:
        summary += f", {broken} packages failed"
    return lines, summary, counts["pass"] > 0 and not counts["fail"] and not broken


if __name__ == "__main__":
    out, line, good = read(sys.argv[1])
    print("\n".join(out), end="\n" if out else "")
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(line + "\n")
    sys.exit(not good)
