"""The text of a tile program as a syntax tree, with limits that keep hostile text harmless.

Nothing is compiled or executed: `ast` builds a tree, and only if the text is small and flat enough
for that to be quick. What stands between the limits and the parser is the exception list below.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from npusmith.errors import LangError, Place

MAX_CHARS = 1024 * 1024
MAX_BRACKETS = 30  # nesting of ( [ {
MAX_STATEMENT = 16000  # characters of one statement, strings and comments not counted
MAX_DEPTH = 100  # levels of the syntax tree
_SHOWN = 100  # characters of a line that a message quotes


@dataclass(frozen=True, slots=True)
class Source:
    """Where errors point to: the file, its lines, and the function being read."""

    file: str
    lines: tuple[str, ...]
    function: str = ""

    def error(
        self,
        code: str,
        message: str,
        at: ast.AST | int | None = None,
        *,
        legal: str = "",
        hint: str = "",
    ) -> LangError:
        """A LangError at a node (or line), quoting that line."""
        line = at if isinstance(at, int) else getattr(at, "lineno", 0)
        place = Place(self.file, line, self.function)
        return LangError(code, message, place, seen=self.quote(line), legal=legal, hint=hint)

    def quote(self, line: int) -> str:
        """A line of the text, shortened to what fits in a message."""
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def short(name: str) -> str:
    """A name or piece of text, shortened to what fits in a message."""
    return name if len(name) <= 40 else name[:37] + "..."


def read_tree(text: str, file: str) -> tuple[Source, ast.Module]:
    """The syntax tree of the text; raises LangError, whatever the text is."""
    source = Source(file, ())
    if len(text) > MAX_CHARS:
        raise source.error("lang-too-large", f"the text has {len(text)} characters")
    source = Source(file, tuple(text.split("\n")))
    _scan(text, source)
    tree = _parse(text, source)
    _measure(tree, source)
    return source, tree


def _parse(text: str, source: Source) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in notes are not worth a warning
            return ast.parse(text)
    except SyntaxError as error:
        raise source.error(
            "lang-syntax", f"not Python syntax: {short(error.msg)}", error.lineno or 0
        ) from None
    except (RecursionError, MemoryError):
        raise source.error("lang-too-deep", "the text is nested too deeply to be read") from None
    except (ValueError, OverflowError) as error:
        raise source.error("lang-syntax", f"not Python text: {short(str(error))}") from None


# Strings and comments are skipped; brackets and line ends are counted.
_TOKEN = re.compile(
    r"'''(?:\\.|[^\\])*?'''"
    r'|"""(?:\\.|[^\\])*?"""'
    r"|'(?:\\.|[^\\'\n])*'"
    r'|"(?:\\.|[^\\"\n])*"'
    r"|\#[^\n]*"
    r"|\\\n"
    r"|[()\[\]{}\n]"
    r"|[^'\"#\\()\[\]{}\n]+|.",
    re.DOTALL,
)


def _scan(text: str, source: Source) -> None:
    """Refuse what would make the parser recurse deeply, before it sees the text."""
    depth = length = 0
    line = 1
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("'", '"'):  # else strings that never end would be looked for again and again
            raise source.error("lang-syntax", "a string is not closed", line)
        if token in ("(", "[", "{"):
            depth += 1
        elif token in (")", "]", "}"):
            depth = max(0, depth - 1)
        elif token == "\n" and depth == 0:
            length = 0
        elif token[0] not in "'\"#":
            length += len(token)
        if depth > MAX_BRACKETS:
            raise source.error("lang-too-deep", f"more than {MAX_BRACKETS} open brackets", line)
        if length > MAX_STATEMENT:
            raise source.error(
                "lang-too-large", f"a statement has more than {MAX_STATEMENT} characters", line
            )
        line += token.count("\n")


def _measure(tree: ast.Module, source: Source) -> None:
    """Refuse a tree that recursive functions could not walk (measured without recursion)."""
    todo: list[tuple[ast.AST, int, int]] = [(tree, 0, 0)]
    while todo:
        node, depth, line = todo.pop()
        line = getattr(node, "lineno", line)
        if depth > MAX_DEPTH:
            raise source.error("lang-too-deep", f"nested more than {MAX_DEPTH} levels deep", line)
        todo += [(child, depth + _levels(node), line) for child in ast.iter_child_nodes(node)]


def _levels(node: ast.AST) -> int:
    """How much deeper the children lie; what is flat in Python may become a chain of nodes."""
    match node:
        case ast.BoolOp(_, parts) | ast.Compare(_, _, parts) | ast.Call(_, parts):
            return max(1, len(parts))
        case _:
            return 1
