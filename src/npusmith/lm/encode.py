"""`encode(words, prompt, completion)`: from text to ids, in every stage and at inference.

A prompt stands between a head and a tail of special tokens: `<|answer|>` of our own tokenizer, or
the turns of a chat template. What a prompt or a completion says never becomes a special token.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from npusmith.lm.tokenizer import Tokenizer


class Words(Protocol):
    """A tokenizer, ours or a backbone's."""

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """What stands before a prompt, and between it and the answer."""

    @property
    def end(self) -> int:
        """The id that ends an answer."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text; none of them is special."""

    def decode(self, ids: list[int]) -> str:
        """The text of ids, without special ones."""


class OwnWords:
    """Our own tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.frame: tuple[list[int], list[int]] = ([], [tokenizer.answer])
        self.end = tokenizer.end

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)


class Encoded(NamedTuple):
    """Ids of a prompt, and of its answer with the token that ends it."""

    prompt: list[int]
    completion: list[int]

    @property
    def tokens(self) -> int:
        return len(self.prompt) + len(self.completion)


def encode_prompt(words: Words, prompt: str) -> list[int]:
    """What a model is given, up to where its answer begins."""
    head, tail = words.frame
    return [*head, *words.encode(prompt), *tail]


def encode(words: Words, prompt: str, completion: str) -> Encoded:
    """A prompt and a whole answer."""
    return Encoded(encode_prompt(words, prompt), [*words.encode(completion), words.end])
