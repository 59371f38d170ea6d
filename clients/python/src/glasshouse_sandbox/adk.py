"""A code executor for Google's Agent Development Kit. The extra `adk` installs what it needs.

from glasshouse_sandbox.adk import GlasshouseCodeExecutor

agent = LlmAgent(name="analyst", model=model, code_executor=GlasshouseCodeExecutor())
"""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Mapping
from typing import Any

try:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.code_executors.base_code_executor import BaseCodeExecutor
    from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
    from pydantic import ConfigDict, Field, PrivateAttr
except ModuleNotFoundError as error:
    raise ImportError(f"{error}: install the extra, as with pip install './clients/python[adk]'") from error

from ._sync import Client, Sandbox
from .errors import GlasshouseError, Gone, NotFound
from .models import Execution

LOST_SESSION = "note: the earlier session has ended; its variables and files are gone\n"


class GlasshouseCodeExecutor(BaseCodeExecutor):
    """Runs the code blocks of an agent in sandboxes.

    client: the client to use; by default one for GLASSHOUSE_URL and GLASSHOUSE_KEY. config: keys of the sandbox's
    config. stateful: each execution id of ADK, which stands for a session, keeps its variables in a sandbox of its own;
    False runs each block in a new sandbox. timeout_seconds: of one block.

    Figures and artifacts come back as output files. close ends the sandboxes; they also end by their idle time.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    stateful: bool = True
    client: Client = Field(default_factory=Client, exclude=True)
    config: Mapping[str, Any] = Field(default_factory=dict)

    _sandboxes: dict[str, Sandbox] = PrivateAttr(default_factory=dict)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Runs one block. Code that fails, and a service that refuses, is a result with stderr."""
        name = code_execution_input.execution_id or ""
        try:
            if self.stateful and name:
                return self._run_in_session(name, code_execution_input)
            with self.client.sandboxes.create(**self.config) as sandbox:
                return self._run(sandbox, code_execution_input)
        except GlasshouseError as error:
            return CodeExecutionResult(stderr=error.detail, exit_code=1)

    def _run_in_session(self, name: str, code: CodeExecutionInput) -> CodeExecutionResult:
        with self._lock:  # one block at a time, as a sandbox runs one
            sandbox = self._sandboxes.get(name)
            if sandbox is not None:
                try:
                    return self._run(sandbox, code)
                except (Gone, NotFound):  # its idle time is over
                    del self._sandboxes[name]
            self._sandboxes[name] = self.client.sandboxes.create(**self.config)
            result = self._run(self._sandboxes[name], code)
            if sandbox is not None:
                result.stdout = LOST_SESSION + result.stdout
            return result

    def _run(self, sandbox: Sandbox, code: CodeExecutionInput) -> CodeExecutionResult:
        files = {f.name: _content(f) for f in code.input_files}
        return self._result(sandbox.run(code.code, files=files, timeout=self.timeout_seconds))

    def _result(self, execution: Execution) -> CodeExecutionResult:
        files = [
            File(f"figure-{n}.png", base64.b64encode(png).decode(), "image/png")
            for n, png in enumerate(execution.images, 1)
        ]
        for artifact in execution.artifacts:
            content = self.client.executions.artifact(artifact)
            files.append(File(artifact.path, base64.b64encode(content).decode(), artifact.mime_type))
        # ADK takes stderr for a failure, so warnings of code that completed stay out of it.
        if not execution.ok:
            return CodeExecutionResult(execution.stdout, execution.text, files, exit_code=1)
        stdout = execution.stdout
        if execution.result is not None:
            stdout += f"result: {execution.result!r}\n"
        return CodeExecutionResult(stdout, "", files, exit_code=0)

    def close(self) -> None:
        """Ends the sandboxes."""
        with self._lock:
            sandboxes, self._sandboxes = self._sandboxes, {}
        for sandbox in sandboxes.values():
            with contextlib.suppress(GlasshouseError):
                sandbox.close()


def _content(file: File) -> bytes:
    """Returns the bytes of a file of ADK, whose content is bytes, base64, or base64 as bytes."""
    data = file.content.encode() if isinstance(file.content, str) else file.content
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return data
