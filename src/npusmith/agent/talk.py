"""What is said to a model and what comes back: `Model.ask(Request) -> Answer`."""

from __future__ import annotations

import hashlib
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

_CHARS = 3  # of program text in a token, at least; for bounds before a call


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Message(_Record):
    role: Literal["system", "user", "assistant"]
    content: str


class Request(_Record):
    """One call. The same request to the same deterministic model gives the same answer."""

    messages: tuple[Message, ...]
    seed: int = 0
    temperature: float = 0.7
    max_tokens: int = 8192  # of the answer

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode("utf-8", "replace")).hexdigest()

    @property
    def most_tokens(self) -> int:
        """An upper bound of what the call can cost, prompt and answer together."""
        return tokens_in("".join(item.content for item in self.messages)) + self.max_tokens


class Usage(_Record):
    """Tokens. `estimated`: the endpoint did not say, they are counted from the text's length."""

    prompt: int
    completion: int
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.prompt + self.completion


class Answer(_Record):
    """`finish`: "stop", or "length" where the limit of tokens cut the text off."""

    text: str
    usage: Usage
    model: str = ""
    finish: str = "stop"


class Model(Protocol):
    """Any model. `ask` may be called from several threads; it raises the model-* codes."""

    name: str

    def ask(self, request: Request) -> Answer: ...


def tokens_in(text: str) -> int:
    """About how many tokens a text is, rather too many than too few."""
    return len(text.encode("utf-8", "replace")) // _CHARS + 1


def estimate(request: Request, text: str) -> Usage:
    """The usage of a call whose endpoint gave none."""
    prompt = "".join(item.content for item in request.messages)
    return Usage(prompt=tokens_in(prompt), completion=tokens_in(text), estimated=True)
