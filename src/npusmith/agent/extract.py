"""From a reply to the code in it: `find_program(text)` and `find_files(text, paths)`.

Replies are prose with fenced blocks, in no form that one could rely on. What is taken is data: it
is parsed or compiled in the sandbox, never executed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.agent.talk import Answer
from npusmith.errors import NpusmithError

_THOUGHTS = "</think>"  # ends what a reasoning model says to itself
_OPEN = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
_TILE = re.compile(r"^@kernel\b", re.MULTILINE)
_CPP = re.compile(r"__aicore__|__global__|#include\s*[<\"]")
_FOREIGN = (
    (re.compile(r"@triton\.jit|\btl\.(load|store)\b"), "Triton"),
    (re.compile(r"__global__\s+void|blockIdx\.x|threadIdx\.x"), "CUDA"),
    (_CPP, "C++"),
    (re.compile(r"^[ \t]*(import|from) torch\b|nn\.Module", re.MULTILINE), "PyTorch"),
)
_MOST_BLOCKS = 1000  # of one reply
MOST_CHARS = 256 << 10  # of a program; the language takes no more either


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: what stands behind its opening fence, and its text."""

    label: str
    text: str
    closed: bool


def after_thoughts(text: str) -> str:
    """What a reasoning model says aloud."""
    return text.rpartition(_THOUGHTS)[2]


def blocks(text: str) -> list[Block]:
    """The fenced blocks, at most so many; one that is never closed goes to the end."""
    text = after_thoughts(text)
    found: list[Block] = []
    at = 0
    while len(found) < _MOST_BLOCKS and (start := _OPEN.search(text, at)):
        fence = start.group(1)
        end = re.compile(rf"^[ \t]*{re.escape(fence)}[ \t]*$", re.MULTILINE).search(
            text, start.end()
        )
        stop = end.start() if end else len(text)
        body = text[start.end() + 1 : stop]
        found.append(Block(start.group(2).strip(), body, end is not None))
        at = end.end() if end else len(text)
    return found


def find_program(answer: Answer) -> str:
    """The last block that looks like a tile program: models show drafts first."""
    found = blocks(answer.text)
    programs = [block for block in found if _TILE.search(block.text)]
    bare = after_thoughts(answer.text)
    if not programs and not found and _TILE.search(bare):
        programs = [Block("", bare, True)]  # without a fence
    if programs:
        return _whole(programs[-1], answer)
    raise _no_code(found, answer, "a tile program with @host and @kernel")


def find_source(answer: Answer) -> str:
    """The last block that looks like Ascend C."""
    sources = [block for block in blocks(answer.text) if "__aicore__" in block.text]
    if sources:
        return _whole(sources[-1], answer)
    raise _no_code(blocks(answer.text), answer, "Ascend C with an __aicore__ function")


def find_files(
    answer: Answer, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, str]:
    """One block for each of the paths; a path stands behind the fence or in the first line."""
    found: dict[str, str] = {}
    paths = (*needed, *optional)
    every = blocks(answer.text)
    for block in every:
        head = f"{block.label} {block.text.partition(chr(10))[0]}"
        path = next(
            (path for path in paths if re.search(rf"(?<![\w/]){re.escape(path)}\b", head)), ""
        )
        if path:
            found[path] = _whole(block, answer)
    missing = [path for path in needed if path not in found]
    if missing and not found:
        raise _no_code(every, answer, "one block for each file")
    if missing:
        raise NpusmithError(
            "reply-part",
            f"the reply has no {missing[0]}",
            seen=", ".join(found),
            legal=", ".join(paths),
        )
    return {path: found[path] for path in paths if path in found}


def _whole(block: Block, answer: Answer) -> str:
    if not block.closed and answer.finish == "length":
        raise NpusmithError("reply-cut", "the code ends in the middle", seen=block.text[-80:])
    if len(block.text) > MOST_CHARS:
        seen = f"{len(block.text):,} characters"
        raise NpusmithError("reply-no-code", "the code is too long to be a program", seen=seen)
    return block.text.strip("\n") + "\n"


def _no_code(found: Sequence[Block], answer: Answer, wanted: str) -> NpusmithError:
    """What was there instead."""
    whole = "\n".join(block.text for block in found) or answer.text
    if answer.finish == "length" and not found:
        return NpusmithError(
            "reply-cut", "the answer ended before any code", seen=answer.text[-80:]
        )
    for pattern, name in _FOREIGN:
        if pattern.search(whole):
            return NpusmithError(
                "reply-language", f"the reply holds {name}", seen=name, legal=wanted
            )
    seen = f"{len(answer.text):,} characters of text, {len(found)} blocks"
    return NpusmithError("reply-no-code", "the reply holds no program", seen=seen, legal=wanted)
