"""Tools for LangChain and LangGraph. The extra `langchain` installs what they need.

from glasshouse_sandbox import Client
from glasshouse_sandbox.langchain import GlasshouseToolkit

with Client() as client, GlasshouseToolkit(client=client) as toolkit:
    agent = create_agent(model, toolkit.get_tools())
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal

try:
    from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool, ToolException
    from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
except ModuleNotFoundError as error:
    raise ImportError(f"{error}: install the extra, as with pip install './clients/python[langchain]'") from error

from ._sync import Client, Sandbox
from .errors import GlasshouseError, Gone, NotFound
from .models import Execution

MAX_IMAGES = 3  # of an answer; a model pays for each
MAX_ROWS = 100  # of an answer of query_database
MAX_SCHEMA = 8000  # characters of an answer of describe_database

LOST_SESSION = "note: the earlier session has ended; its variables and files are gone\n"


class CodeInput(BaseModel):
    """The arguments of GlasshousePythonTool."""

    code: str = Field(description="Body of one module; await works at top level")


class GlasshousePythonTool(BaseTool):
    """Runs Python in one sandbox, which keeps variables, imports and files from call to call.

    client: the client to use. config: the sandbox's config, such as {"max_memory_mb": 512}. The content of an answer is
    what a model should read: text, and figures as image blocks. The artifact is the Execution. Code that fails is an
    answer, too. Calls that come at the same time run one after the other.

    The first call creates the sandbox. Close the tool, or use it as a context manager.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str = "run_python"
    description: str = (
        "Run Python in an isolated sandbox with pandas, numpy and matplotlib. Variables, imports and files stay from "
        "call to call. await db_query(sql, params) returns rows as dicts; the database is read-only. The answer has "
        "what was printed, the value of the last expression, and figures. If the run fails, use the hint and the "
        "variables in the answer."
    )
    args_schema: Any = CodeInput
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    client: Client = Field(exclude=True)
    config: Mapping[str, Any] = Field(default_factory=dict)

    _sandbox: Sandbox | None = PrivateAttr(default=None)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def _run(self, code: str) -> tuple[str | list[str | dict[str, Any]], Execution]:
        with self._lock:
            execution, is_lost = self._execute(code)
        text = LOST_SESSION + execution.text if is_lost else execution.text
        images = execution.images[:MAX_IMAGES]
        if not images:
            return text, execution
        blocks: list[str | dict[str, Any]] = [{"type": "text", "text": text}]
        for png in images:
            blocks.append({"type": "image", "base64": base64.b64encode(png).decode(), "mime_type": "image/png"})
        return blocks, execution

    def _execute(self, code: str) -> tuple[Execution, bool]:
        """Runs code, and returns whether an earlier sandbox has ended."""
        had_one = self._sandbox is not None
        if self._sandbox is not None:
            try:
                return self._sandbox.run(code), False
            except (Gone, NotFound):  # its idle time is over
                self._sandbox = None
        self._sandbox = self.client.sandboxes.create(**self.config)
        return self._sandbox.run(code), had_one

    def close(self) -> None:
        """Ends the sandbox."""
        with self._lock:
            sandbox, self._sandbox = self._sandbox, None
            if sandbox is not None:
                try:
                    sandbox.close()
                except GlasshouseError:
                    pass  # it has ended

    def __enter__(self) -> GlasshousePythonTool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class GlasshouseToolkit(BaseToolkit):
    """Three tools: code_sandbox (a GlasshousePythonTool), query_database and describe_database.

    client: the client to use. config: the sandbox's config. Close the toolkit, or use it as a context manager.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client = Field(exclude=True)
    config: Mapping[str, Any] = Field(default_factory=dict)

    _python: GlasshousePythonTool | None = PrivateAttr(default=None)

    def get_tools(self) -> list[BaseTool]:
        """Returns the tools. They share one sandbox, and each call returns the same."""
        if self._python is None:
            self._python = GlasshousePythonTool(client=self.client, config=self.config, name="code_sandbox")
        return [
            self._python,
            StructuredTool.from_function(self.query_database, handle_tool_error=True),
            StructuredTool.from_function(self.describe_database, handle_tool_error=True),
        ]

    def query_database(self, sql: str, params: dict[str, Any] | None = None, database: str | None = None) -> str:
        """Run one read-only SQL statement (PostgreSQL). Write :name for parameters. Returns rows as JSON lines."""
        try:
            result = self.client.query(sql, params, database=database)
        except GlasshouseError as error:
            raise ToolException(error.detail) from error
        lines = [json.dumps(row, ensure_ascii=False) for row in result.rows[:MAX_ROWS]]
        more = result.truncated or len(result.rows) > MAX_ROWS
        lines.append(f"{len(lines)} rows, truncated: aggregate, or use LIMIT" if more else f"{len(lines)} rows")
        return "\n".join(lines)

    def describe_database(self, table: str = "", database: str | None = None) -> str:
        """List the tables of a database with their columns, or describe one table."""
        try:
            schema = self.client.schema(database=database)
            databases = [] if table else [each["name"] for each in self.client.databases()]
        except GlasshouseError as error:
            raise ToolException(error.detail) from error
        names = [name for name in schema["tables"] if table in ("", name)]
        if not names:
            raise ToolException(f"there is no table {table!r}; tables: {', '.join(schema['tables'])[:1000]}")
        lines = [f"databases: {', '.join(databases)}; the first is the default"] if len(databases) > 1 else []
        for name in names:
            columns = schema["schema"][name]
            lines.append(f"{name}: " + ", ".join(f"{c['column_name']} {c['data_type']}" for c in columns))
        text = "\n".join(lines)
        return text if len(text) <= MAX_SCHEMA else "tables: " + ", ".join(names)[:MAX_SCHEMA]

    def close(self) -> None:
        """Ends the sandbox of the tools."""
        if self._python is not None:
            self._python.close()

    def __enter__(self) -> GlasshouseToolkit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
