"""A model that follows a script: every test, and every demonstration without an endpoint, uses it.

A script is a JSON file, `{"rules": [...]}`; the first rule that fits a request answers it, by the
request alone, so that the same request always gets the same answer. Without a rule that fits, and
without a script, the model answers with the first example of its prompt: retrieval alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npusmith.agent.talk import Answer, Request, estimate
from npusmith.errors import NpusmithError, Place

EXAMPLE, CANDIDATE = "@example", "@candidate"  # replies that repeat a part of the prompt
_MOST_BYTES = 16 << 20
_EXAMPLE = re.compile(r"^## Example.*?^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CANDIDATE = re.compile(r"^## Candidate.*?^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CODES = {
    "status": "model-busy", "slow": "model-slow", "cut": "model-cut", "garbled": "model-garbled",
    "empty": "model-empty", "long": "model-long", "down": "model-down",
}  # fmt: skip


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fault(_Record):
    """What a server does instead of answering; `times`: so often, then the rule's reply."""

    kind: Literal["status", "slow", "cut", "garbled", "empty", "long", "down"]
    status: int = 503
    retry_after: str = ""
    seconds: float = 1.0  # slow: before the first byte
    size: int = 1 << 20  # long: tokens
    times: int = 1 << 30


class Rule(_Record):
    """`contains` and `absent` look at the last user message; empty: anything fits."""

    contains: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    replies: tuple[str, ...] = Field(default=(EXAMPLE,), min_length=1)  # by seed, round and round
    fault: Fault | None = None

    def fits(self, request: Request) -> bool:
        last = request.messages[-1].content if request.messages else ""
        return (
            all(word in last for word in self.contains)
            and not any(word in last for word in self.absent)
            and (not self.seeds or request.seed in self.seeds)
        )


class Script(_Record):
    rules: tuple[Rule, ...] = ()

    def rule(self, request: Request) -> Rule:
        return next((rule for rule in self.rules if rule.fits(request)), Rule())


class Scripted:
    """A Model that answers from a script; a rule's fault is raised as the error it would become."""

    def __init__(self, script: Script | None = None, name: str = "scripted") -> None:
        self.name = name
        self._script = script or Script()

    def ask(self, request: Request) -> Answer:
        rule = self._script.rule(request)
        if rule.fault is not None:
            code = _CODES[rule.fault.kind]
            raise NpusmithError(code, f"{self.name}: {rule.fault.kind}, as the script says")
        return answer(rule, request, self.name)


def read_script(path: Path) -> Script:
    """NpusmithError script-file for anything that is no script."""
    place = Place(str(path))
    if not path.is_file():
        raise NpusmithError("file-missing", f"{path} does not exist", place)
    if path.stat().st_size > _MOST_BYTES:
        raise NpusmithError("script-file", f"{path} is too large", place)
    try:
        return Script.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        seen = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
        raise NpusmithError("script-file", f"{path} is no script", place, seen=seen) from error


def answer(rule: Rule, request: Request, name: str) -> Answer:
    """The rule's answer, without its fault."""
    text = _expand(rule.replies[request.seed % len(rule.replies)], request)
    return Answer(text=text, usage=estimate(request, text), model=name)


def _expand(reply: str, request: Request) -> str:
    pattern = {EXAMPLE: _EXAMPLE, CANDIDATE: _CANDIDATE}.get(reply)
    if pattern is None:
        return reply
    for message in reversed(request.messages):
        if found := pattern.search(message.content):
            return f"```python\n{found.group(1)}```\n"
    return "There is nothing to repeat.\n"
