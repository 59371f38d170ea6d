"""The registry of helpers: the names that user code finds in its namespace.

Each helper is declared once, where it is defined: a method of namespace.Helpers or a class with @helper, any other
value with value(). The namespace of a session, completion, GET /sandbox/{id}/help/functions and docs/helpers.md come
from this registry. `go generate ./service/help` runs this module as a program, which writes the last two.
"""

import sys
import typing
from collections.abc import Callable

GROUPS = {
    "database": "Reading the database",
    "debugging": "Notes and state",
    "output": "Output of a run",
    "run": "The run itself",
    "dates": "Dates",
}
PER_RUN = object()  # the value of a helper that each run, and not the session, has


class Helper(typing.NamedTuple):
    """A declared name. value is UNBOUND for a method of namespace.Helpers, or PER_RUN, or the value of the name."""

    name: str
    group: str
    signature: str  # "" for that of the function
    description: str
    awaitable: bool
    value: object
    in_compat: bool  # also in the namespace of the profile compat, which has Python's own names only


UNBOUND = object()  # the value of a helper that is a method
REGISTRY: "dict[str, Helper]" = {}
T = typing.TypeVar("T", bound=Callable)


def helper(
    group: str, *, signature: str = "", awaitable: bool = False, in_compat: bool = False
) -> "Callable[[T], T]":
    """Declares a method of namespace.Helpers, or a class, as a helper; its docstring is the description."""

    def declare(target: T) -> T:
        bound = target if isinstance(target, type) else UNBOUND
        _add(Helper(target.__name__, group, signature, target.__doc__ or "", awaitable, bound, in_compat), target)
        return target

    return declare


def value(name: str, group: str, signature: str, description: str, bound: object = PER_RUN, in_compat=False) -> None:
    """Declares any other name: a value of the standard library, or a variable that each run sets."""
    _add(Helper(name, group, signature, description, False, bound, in_compat), None)


_functions: "dict[str, Callable]" = {}


def _add(declared: Helper, function: "Callable | None") -> None:
    if declared.name in REGISTRY or declared.group not in GROUPS or not declared.description.strip():
        raise ValueError(f"the helper {declared.name!r} needs a name of its own, a group of GROUPS and a description")
    REGISTRY[declared.name] = declared
    if function is not None:
        _functions[declared.name] = function


def namespace(owner: object) -> dict:
    """Returns the names that a session begins with; owner is its namespace.Helpers."""
    return {
        name: getattr(owner, name) if each.value is UNBOUND else each.value
        for name, each in REGISTRY.items()
        if each.value is not PER_RUN
    }


def described() -> "dict[str, list[dict]]":
    """Returns the helpers by group, as GET /sandbox/{id}/help/functions lists them."""
    groups: dict[str, list[dict]] = {group: [] for group in GROUPS}
    for each in sorted(REGISTRY.values(), key=lambda each: isinstance(each.value, type)):  # functions before classes
        signature = each.signature or each.name + _parameters(_functions[each.name])
        groups[each.group].append(
            {
                "name": each.name,
                "signature": ("await " if each.awaitable else "") + signature,
                "description": " ".join(each.description.split()),
                "awaitable": each.awaitable,
            }
        )
    return groups


def _parameters(function: Callable) -> str:
    import inspect  # only where the registry is printed: the zygote keeps its memory small

    signature = inspect.signature(function)
    return str(signature.replace(parameters=list(signature.parameters.values())[1:])).replace("'", '"')


def as_json() -> str:
    """Returns service/help/helpers.json."""
    import json

    return json.dumps(described(), indent=2) + "\n"


def as_markdown() -> str:
    """Returns docs/helpers.md."""
    import textwrap

    lines = [
        "# Helpers",
        "",
        "Code in a sandbox finds these names without an import. Those with `await` also work without it.",
        "`go generate ./service/help` writes this page from `sandbox/python/guest/helpers.py`.",
    ]
    for group, listed in described().items():
        lines += ["", f"## {GROUPS[group]}", ""]
        for each in listed:
            text = f"- `{each['signature']}`: {each['description']}"
            lines += textwrap.wrap(text, 100, subsequent_indent="  ", break_long_words=False)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the registry to the files that the arguments name, as Markdown to those that end in .md."""
    import helpers  # what they have imported; this module is __main__
    import namespace as _  # noqa: F401 - its import, and that of the modules below it, declares the helpers

    for path in sys.argv[1:]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(helpers.as_markdown() if path.endswith(".md") else helpers.as_json())


if __name__ == "__main__":
    main()
