"""Fails where code that runs inside imports what is not in the standard library.

What runs inside is written into a root that has nothing else for certain, so a
third-party import may stand there only behind a look at sys.modules. Our own
extensions, whose sources are in ext beside it, are at home too.

    inside.py FOLDER
"""

import ast
import pathlib
import sys


def foreign(folder: pathlib.Path) -> list[str]:
    """Return "file:line: module" for each import from elsewhere."""
    files = sorted(folder.glob("*.py"))
    known = sys.stdlib_module_names | {f.stem for f in [*files, *(folder.parent / "ext").glob("*.c")]}
    found = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            names = []
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            found += [f"{file}:{node.lineno}: {n}" for n in names if n.split(".")[0] not in known]
    return found


if __name__ == "__main__":
    bad = foreign(pathlib.Path(sys.argv[1]))
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(bool(bad))
