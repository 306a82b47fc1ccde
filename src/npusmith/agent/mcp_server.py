"""`npusmith mcp`: the tools of tools.py over the Model Context Protocol, on stdio.

What fails is an answer that says so (isError) with the error as data. Arguments that a tool does
not have are refused. Long answers are short, with a link to the whole document; steps of long calls
are told as progress. The skill file is a resource.
"""

from __future__ import annotations

import functools
import inspect
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from npusmith.agent.prompt import rules
from npusmith.agent.tools import Answer, Tools
from npusmith.errors import NpusmithError
from npusmith.version import __version__

_ABOUT = (
    "Writes and judges Ascend C operators without an NPU. Write a tile program (ask `language` for "
    "its rules), `check` it, `try` it on the task, see what limits a project with `profile`. "
    "Every time is an estimate of a model, not a measurement. The resource npusmith://skill says "
    "how to go about it."
)
_SKILL = "npusmith://skill"
_KEPT = 16  # whole answers
# What a client reads without opening the whole document; what is long in it stays there.
_LONG = ("trials", "provenance", "seconds", "intermediates", "prints", "unreached", "findings")
# Tools that leave nothing behind, whatever they are asked.
_READING = ("check", "run", "search-knowledge", "language")


def serve(chip: str, knowledge: str, root: Path | None = None, options: str = "") -> None:
    """Until the client closes the pipe; raises extra-missing without the mcp package."""
    make_server(chip, knowledge, root, options).run("stdio")


def make_server(chip: str, knowledge: str, root: Path | None = None, options: str = "") -> Any:
    """The server with its tools. `options`: the writer's, of every call."""
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise NpusmithError(
            "extra-missing", "the package mcp is not installed", hint='pip install "npusmith[mcp]"'
        ) from error
    kept = Documents()
    tools = Tools(chip, knowledge, root, options)
    served = [_tool(name, function, tools, kept) for name, function in tools.named().items()]
    server = MCPServer(
        "npusmith", version=__version__, instructions=_ABOUT, log_level="ERROR", tools=served
    )
    server.resource(_SKILL, name="skill", mime_type="text/markdown")(_skill)
    server.resource("npusmith://answers/{number}", name="answer", mime_type="application/json")(
        kept.read
    )
    return server


def _skill() -> str:
    """How to write, judge and speed up an operator with these tools."""
    return rules("SKILL")


class Documents:
    """The last whole answers, by number."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, str] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def keep(self, answer: Answer) -> str:
        """Its address."""
        with self._lock:
            self._count += 1
            self._held[str(self._count)] = json.dumps(answer, indent=1)
            while len(self._held) > _KEPT:
                self._held.popitem(last=False)
            return f"npusmith://answers/{self._count}"

    def read(self, number: str) -> str:
        """The whole document of an earlier answer; only the last ones are kept."""
        if number not in self._held:
            raise ValueError(f"answer {number} is not kept: the last {_KEPT} are")
        return self._held[number]


def shortened(answer: Answer, kept: Documents) -> Answer:
    """Without what few readers need, and where that is."""
    short = {name: value for name, value in answer.items() if name not in _LONG and value != []}
    if len(short) == len(answer):
        return answer
    trials = answer.get("trials") or []
    if trials:
        passed = sum(bool(item.get("passed")) for item in trials)
        short["sets_of_inputs"] = f"{passed} of {len(trials)} right"
    return {**short, "detail": kept.keep(answer)}


def _tool(name: str, function: Callable[..., Answer], tools: Tools, kept: Documents) -> Any:
    """A tool of the protocol, with what it may do, and no argument besides those it names."""
    from mcp.server.mcpserver.tools.base import Tool
    from mcp.types import ToolAnnotations

    reading = name in _READING
    told = ToolAnnotations(
        title=name, read_only_hint=reading, destructive_hint=None if reading else False,
        idempotent_hint=True, open_world_hint=name == "generate",
    )  # fmt: skip
    tool = Tool.from_function(
        _answering(function, tools, kept), name=name, description=inspect.getdoc(function),
        annotations=told, structured_output=False,
    )  # fmt: skip
    known = tool.fn_metadata.arg_model
    strict: Any = type(known.__name__, (known,), {"model_config": {"extra": "forbid"}})
    metadata = tool.fn_metadata.model_copy(update={"arg_model": strict})
    parameters = strict.model_json_schema(by_alias=True)
    return tool.model_copy(update={"fn_metadata": metadata, "parameters": parameters})


def _answering(function: Callable[..., Answer], tools: Tools, kept: Documents) -> Any:
    """The tool in the words of the protocol: progress while it runs, failures marked as such."""
    import anyio.from_thread
    from mcp.server.mcpserver import Context
    from mcp.types import CallToolResult, TextContent

    def said(answer: Answer, failed: bool) -> Any:
        text = TextContent(type="text", text=json.dumps(answer, indent=1))
        return CallToolResult(content=[text], structured_content=answer, is_error=failed)

    @functools.wraps(function)
    def call(*args: Any, context: Any, **more: Any) -> Any:
        steps = 0

        def tell(step: str, detail: str) -> None:
            nonlocal steps
            steps += 1
            words = f"{step}: {detail}" if detail else step
            anyio.from_thread.run(context.report_progress, float(steps), None, words)

        try:
            with tools.watched(tell):
                return said(shortened(function(*args, **more), kept), failed=False)
        except NpusmithError as error:
            return said({"verdict": "error", "error": error.record()}, failed=True)

    signature = inspect.signature(function, eval_str=True)
    extra = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    parameters = (*signature.parameters.values(), extra)
    hints = {item.name: item.annotation for item in parameters}
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=CallToolResult
    )
    call.__annotations__ = {**hints, "return": CallToolResult}
    del call.__wrapped__
    return call
