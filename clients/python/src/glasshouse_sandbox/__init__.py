"""The Python client of Glasshouse, which runs Python that AI agents write next to PostgreSQL.

    from glasshouse_sandbox import Client

    with Client() as client:                      # GLASSHOUSE_URL, GLASSHOUSE_KEY
        print(client.run("6 * 7").result)         # 42
        with client.sandboxes.create() as sandbox:
            sandbox.run("rows = await db_query('SELECT * FROM users')")
            print(sandbox.run("len(rows)").text)  # what a language model should read

AsyncClient has the same methods for asyncio. docs/python.md of the project describes both.
"""

from ._async import AsyncClient, AsyncExecutions, AsyncFiles, AsyncPendingWrites, AsyncSandbox, AsyncSandboxes
from ._sync import Client, Executions, Files, PendingWrites, Sandbox, Sandboxes
from .errors import (
    Busy,
    ConnectionFailed,
    ExecutionFailed,
    Forbidden,
    Full,
    GlasshouseError,
    Gone,
    InternalError,
    InvalidInput,
    LimitReached,
    NotConfigured,
    NotFound,
    QueryRefused,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from .models import (
    Artifact,
    Difference,
    Divergence,
    ExceptionInfo,
    Execution,
    File,
    Output,
    Page,
    PendingWrite,
    Query,
    QueryResult,
    Replay,
    Restored,
    Stages,
    Step,
    StepPage,
    Why,
    WhyCell,
    WhyNot,
)

__all__ = [
    "Artifact",
    "AsyncClient",
    "AsyncExecutions",
    "AsyncFiles",
    "AsyncPendingWrites",
    "AsyncSandbox",
    "AsyncSandboxes",
    "Busy",
    "Client",
    "ConnectionFailed",
    "Difference",
    "Divergence",
    "ExceptionInfo",
    "Execution",
    "ExecutionFailed",
    "Executions",
    "File",
    "Files",
    "Forbidden",
    "Full",
    "GlasshouseError",
    "Gone",
    "InternalError",
    "InvalidInput",
    "LimitReached",
    "NotConfigured",
    "NotFound",
    "Output",
    "Page",
    "PendingWrite",
    "PendingWrites",
    "Query",
    "QueryRefused",
    "QueryResult",
    "Replay",
    "Restored",
    "Sandbox",
    "Sandboxes",
    "Stages",
    "Step",
    "StepPage",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "Why",
    "WhyCell",
    "WhyNot",
]
