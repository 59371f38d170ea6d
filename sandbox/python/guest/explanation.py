"""What db_explain returns: the plan of a statement, and on demand the rows after each of its stages."""

import builtins
import html

import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_CLAUSE = 200  # characters of a stage in HTML
MAX_HTML_ROWS = 200

_escape = html.escape


class Explanation(dict):
    """The plan of a statement as a dict: total_cost, rows and plan, which are estimates. text, blocks and findings have
    the rows after each stage of the statement, which runs once when one of them is first read. print() and the display
    of a notebook read them."""

    __module__ = "builtins"  # the module that user code sees

    def __init__(self, plan: dict, ask, failure: type[Exception]):
        super().__init__(plan)
        self._ask, self._failure = ask, failure
        self._stages: dict | None = None

    def __await__(self):
        return self
        yield

    def __reduce__(self):
        return dict, (dict(self),)  # a copy has no connection

    def _answer(self) -> dict:
        stages = self._stages
        if stages is None:
            self._stages = stages = self._ask()
        return stages

    @property
    def text(self) -> str:
        """The rows after each stage, and what may be wrong, for a language model."""
        return self._answer()["text"]

    @property
    def blocks(self) -> list:
        """The SELECTs of the statement with their stages, those that others read first."""
        return self._answer()["blocks"]

    @property
    def findings(self) -> list:
        """What may be wrong, with the evidence of the data; the best one first."""
        return self._answer()["findings"]

    def __str__(self):
        try:
            return self.text
        except self._failure as error:
            return f"{error}\nPlan: {dict(self)}"

    def _repr_html_(self):
        try:
            answer = self._answer()
        except self._failure as error:
            return f"<p>{_escape(str(error))}</p>"
        lines, left = [], MAX_HTML_ROWS
        for block in answer["blocks"]:
            name = block.get("name") or block["kind"]
            head = f"{name}: {block['reason']}" if block.get("reason") else name
            lines.append(f'<tr><th colspan="6" style="text-align:left">{_escape(head)}</th></tr>')
            for stage in block["stages"][:left]:
                lines.append(_row(stage))
            left = max(left - len(block["stages"]), 0)
        found = "".join(
            f"<li>line {each['line']} ({each['score']}): {_escape(each['text'])}</li>" for each in answer["findings"]
        )
        head = "".join(f"<th>{name}</th>" for name in ("line", "stage", "rows in", "rows", "lost", "NULL"))
        return f"<table><tr>{head}</tr>{''.join(lines)}</table>" + (f"<ul>{found}</ul>" if found else "")


values.DICTS.add(Explanation)


def _row(stage: dict) -> str:
    rows = stage.get("rows_out")
    if rows is None:
        rows = f"about {stage['estimated_out']}" if "estimated_out" in stage else stage.get("reason", stage["state"])
    clause = " ".join(stage["text"].split())
    if len(clause) > MAX_CLAUSE:
        clause = clause[: MAX_CLAUSE - 3] + "..."
    numbers = (stage.get("rows_in", ""), rows, stage.get("lost", ""), stage.get("null", ""))
    cells = "".join(f"<td>{_escape(str(each))}</td>" for each in numbers)
    return f"<tr><td>{stage['from_line']}</td><td><code>{_escape(clause)}</code></td>{cells}</tr>"
