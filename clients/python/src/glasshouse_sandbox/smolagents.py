# mypy: disable-error-code="import-untyped"
"""An executor for smolagents. The extra `smolagents` installs what it needs.

from glasshouse_sandbox.smolagents import GlasshouseExecutor

with GlasshouseExecutor() as executor:
    agent = CodeAgent(tools=[], model=model, executor=executor)
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any

try:
    import PIL.Image
    from smolagents.local_python_executor import BASE_BUILTIN_MODULES, CodeOutput
    from smolagents.monitoring import AgentLogger
    from smolagents.remote_executors import RemotePythonExecutor
    from smolagents.serialization import SafeSerializer
    from smolagents.tools import get_tools_definition_code
    from smolagents.utils import AgentError
except ModuleNotFoundError as error:
    raise ImportError(f"{error}: install the extra, as with pip install './clients/python[smolagents]'") from error

from ._sync import Client
from .errors import GlasshouseError
from .models import Execution

# Modules whose packages have another name.
MODULES = {
    "beautifulsoup4": "bs4",
    "opencv-python": "cv2",
    "pillow": "PIL",
    "python-dateutil": "dateutil",
    "pyyaml": "yaml",
    "scikit-image": "skimage",
    "scikit-learn": "sklearn",
}

SERIALIZER_MODULES = ("pickle", "pathlib")  # that final_answer of smolagents imports
IMPORT = re.compile(r"^( *)(?:from (\w+) )?import (\w+)$", re.MULTILINE)

# The message of an exception is cut where it is long, so a final answer stays in a variable.
FINAL_ANSWER = "smolagents_final_answer"
RAISE = re.compile(r"raise FinalAnswerException\((_serialize_with_fallback\(.*\))\)$", re.MULTILINE)
RAISE_SHORT = rf'global {FINAL_ANSWER}; {FINAL_ANSWER} = \1; raise FinalAnswerException("{FINAL_ANSWER}")'


class GlasshouseExecutor(RemotePythonExecutor):  # type: ignore[misc]  # smolagents has no types
    """Runs the code of a CodeAgent in one sandbox, which keeps variables, imports and files from step to step.

    additional_imports: packages that the agent needs; AgentError names those that the sandbox cannot import. client:
    the client to use; by default one for GLASSHOUSE_URL and GLASSHOUSE_KEY. config: keys of the sandbox's config.

    A final answer comes back as JSON. Pickle is never read: code in the sandbox could forge it.
    """

    def __init__(
        self, additional_imports: Sequence[str] = (), logger: Any = None, *, client: Client | None = None, **config: Any
    ) -> None:
        super().__init__(list(additional_imports), logger or AgentLogger(), allow_pickle=False)
        self._own = client is None
        self.client = client or Client()
        self.sandbox = self.client.sandboxes.create(**config)
        try:
            self.installed_packages = self.install_packages(list(additional_imports))
        except BaseException:
            self.cleanup()
            raise

    def send_variables(self, variables: dict[str, Any]) -> None:
        """Sets variables in the sandbox. Their values are those that JSON holds and smolagents can restore."""
        if not variables:
            return
        wrong = [name for name in variables if not name.isidentifier()]
        if wrong:
            raise AgentError(f"not a name of a variable: {', '.join(map(repr, wrong))}", self.logger)
        sets = "\n".join(f"{name} = _received[{name!r}]" for name in variables)
        code = f"{SafeSerializer.get_deserializer_code(False)}\n_received = _deserialize(context['variables'])\n{sets}"
        self._run(code, {"variables": SafeSerializer.dumps(variables, allow_pickle=False)})

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Defines the tools in the sandbox. Their packages must be installed."""
        if "final_answer" in tools:
            self._patch_final_answer_with_exception(tools["final_answer"])
            forward = tools["final_answer"].__class__.forward
            forward.__source__ = RAISE.sub(RAISE_SHORT, forward.__source__)
        packages = {p for tool in tools.values() for p in tool.to_dict()["requirements"]}
        self.installed_packages += self.install_packages(sorted(packages - {"smolagents", *self.installed_packages}))
        code = get_tools_definition_code(tools)
        if code:
            self._run(self._without_refused_imports(code), None)

    def _without_refused_imports(self, code: str) -> str:
        """Returns code without those imports of smolagents itself that the sandbox refuses.

        smolagents writes them before the tools' own code, for types that a tool may use.
        """
        refused = {m for m in (*BASE_BUILTIN_MODULES, *SERIALIZER_MODULES) if not self.sandbox.run(f"import {m}").ok}

        def replace(match: re.Match[str]) -> str:
            indent, module, name = match.groups()
            if (module or name) not in refused:
                return match[0]
            return f"{indent}{name} = type(None)" if module else f"{indent}pass"  # as the type of no value

        return IMPORT.sub(replace, code)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Runs code. Raises AgentError with the text that a model should read if it fails."""
        return self._run(code, None)

    def _run(self, code: str, context: dict[str, Any] | None) -> CodeOutput:
        try:
            execution = self.sandbox.run(code, context=context)
        except GlasshouseError as error:
            raise AgentError(error.detail, self.logger) from error
        x = execution.exception
        if x is not None and x.type.rsplit(".", 1)[-1] == self.FINAL_ANSWER_EXCEPTION:
            message = x.message
            if message == FINAL_ANSWER:
                message = str(self.sandbox.run(FINAL_ANSWER).raise_for_status().result)
            answer = self._deserialize_final_answer(message, allow_pickle=False)
            return CodeOutput(output=answer, logs=execution.stdout, is_final_answer=True)
        if not execution.ok:
            raise AgentError(execution.text, self.logger)
        return CodeOutput(output=_value(execution), logs=execution.stdout, is_final_answer=False)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Checks that the packages are installed, and returns them. An operator installs packages, not an agent."""
        missing = []
        for package in additional_imports:
            name = re.split(r"[\[<>=!~; ]", package, maxsplit=1)[0]
            module = MODULES.get(name.lower(), name.replace("-", "_"))
            if not module.replace(".", "_").isidentifier():
                missing.append(f"{package} (no name of a package)")
                continue
            execution = self.sandbox.run(f"import {module}")
            if not execution.ok:
                missing.append(f"{package} ({execution.error})")
        if missing:
            raise AgentError(
                f"packages that the sandbox cannot import: {'; '.join(missing)}. An operator adds packages with "
                "`glasshouse env add`",
                self.logger,
            )
        return additional_imports

    def cleanup(self) -> None:
        """Ends the sandbox."""
        try:
            self.sandbox.close()
        except GlasshouseError:
            pass  # it has ended
        if self._own:
            self.client.close()

    def __enter__(self) -> GlasshouseExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cleanup()


def _value(execution: Execution) -> Any:
    """Returns the value of the last expression: an image, JSON, or text where JSON cannot hold it."""
    for output in execution.outputs:
        if output.role == "result":
            png = output.image()
            return PIL.Image.open(io.BytesIO(png)) if png is not None else output.data.get("text/plain", output.summary)
    return execution.result
