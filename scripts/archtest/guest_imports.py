"""Fails if code of the guest imports a module that is not in the standard library.

Only our own files and the standard library are always in the guest's root. Therefore third-party
modules may only be looked up in sys.modules. Our own extensions may be imported; their sources are
in the folder ext next to the guest's folder.

    guest_imports.py FOLDER
"""

import ast
import pathlib
import sys


def third_party(folder: pathlib.Path) -> list[str]:
    """Return "file:line: module" for each import from outside the standard library."""
    files = sorted(folder.glob("*.py"))
    known = sys.stdlib_module_names | {f.stem for f in [*files, *(folder.parent / "ext").iterdir()]}
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
    bad = third_party(pathlib.Path(sys.argv[1]))
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(bool(bad))
