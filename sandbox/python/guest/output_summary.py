"""Summarises each rich output in one line of text, for language models that cannot see images."""

MAX_COLUMNS = 12


def frame(v) -> str:
    rows, columns = v.shape
    kinds = [f"{name} {kind}" for name, kind in zip(v.columns[:MAX_COLUMNS], v.dtypes[:MAX_COLUMNS])]
    more = f" and {columns - MAX_COLUMNS} more" if columns > MAX_COLUMNS else ""
    return f"table of {rows} rows and {columns} columns: {', '.join(kinds)}{more}"


def figure(v) -> str:
    parts = []
    for axes in v.axes[:6]:
        drawn = {
            "line": len(axes.lines),
            "bar": len(axes.patches),
            "point set": len(axes.collections),
            "image": len(axes.images),
        }
        drawn_text = ", ".join(f"{n} {noun}{'s' if n > 1 else ''}" for noun, n in drawn.items() if n) or "nothing drawn"
        labels = [
            f"{which} is {text!r}" for which, text in (("x", axes.get_xlabel()), ("y", axes.get_ylabel())) if text
        ]
        title = repr(axes.get_title()) + ": " if axes.get_title() else ""
        parts.append(title + "; ".join([drawn_text, *labels]))
    return (
        "figure"
        + (f" of {len(v.axes)} plots" if len(v.axes) > 1 else "")
        + (": " + " | ".join(parts) if parts else ", empty")
    )


def plotly(made: dict) -> str:
    traces = [str(trace.get("type", "trace")) for trace in made.get("data", [])]
    title = made.get("layout", {}).get("title", {}).get("text", "")
    return "plotly figure" + (f" {title!r}" if title else "") + ": " + (", ".join(traces[:8]) or "nothing drawn")


def text(bundle: dict) -> str:
    """Summarises any other output: how its text begins, and its other types."""
    lines = str(bundle.get("text/plain", "")).strip().split("\n")
    others = [mime for mime in bundle if mime and mime != "text/plain"]
    more = f" ... ({len(lines)} lines)" if len(lines) > 1 else ""
    return lines[0][:200] + more + (f" [{', '.join(others)}]" if others else "")
