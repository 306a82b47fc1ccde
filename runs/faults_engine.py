"""Faults that nobody chose: every mutation of a kind at every node of a syntax tree.

`sites(text, route)`: where a text can be changed, and what is put there. Nodes are those of
Python's own parser for tile programs, and of tree-sitter for Ascend C. A kind is a mutation and
what it is done to: `argument dropped:load`, `operator - for +:in a bound of a loop`. Which kinds
there are follows from the grammar and from the texts, not from a list of what models do wrong.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from npusmith.knowledge.tokens import TILE

_UNSEEN = 3  # one kind of so many is kept from learning
_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_COMPARED: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_CPP_OPERATORS = ("+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=")
_NUMBERS = ("0", "{n} + 1", "{n} * 2", "{n} // 2")


@dataclass(frozen=True, slots=True)
class Site:
    """A change of one place: the characters from `start` to `stop` become `put`."""

    kind: str
    start: int
    stop: int
    put: str

    def changed(self, text: str) -> str:
        return text[: self.start] + self.put + text[self.stop :]


def is_unseen(kind: str) -> bool:
    """Whether a kind is kept from learning: a third, whatever they are."""
    return hashlib.sha256(kind.encode()).digest()[0] % _UNSEEN == 0


def sites(text: str, route: str) -> list[Site]:
    """All changes of a text, in its order."""
    made = _tile_sites(text) if route == TILE else _cpp_sites(text)
    found = (site for site in made if text[site.start : site.stop] != site.put)
    return sorted(dict.fromkeys(found), key=lambda site: (site.start, site.stop, site.kind))


# ----------------------------------------------------------------------------------- tile programs


class _Tile:
    """A tile program and where its nodes lie."""

    def __init__(self, text: str) -> None:
        self.text, self.tree = text, ast.parse(text)
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, node: Any) -> tuple[int, int]:
        """Programs are ASCII: columns are characters."""
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def of(self, node: Any) -> str:
        start, stop = self.span(node)
        return self.text[start:stop]


def _tile_sites(text: str) -> Iterator[Site]:
    held = _Tile(text)
    calls = [node for node in ast.walk(held.tree) if isinstance(node, ast.Call)]
    callees = sorted({held.of(node.func) for node in calls})
    places = [
        (child, _context(held, parent))
        for parent in ast.walk(held.tree)
        for child in ast.iter_child_nodes(parent)
    ]
    names: dict[str, set[str]] = {}  # that stand in the same kind of place
    for node, where in places:
        if isinstance(node, ast.Name):
            names.setdefault(where, set()).add(node.id)
    for node, where in places:
        yield from _tile_node(held, node, where, callees, sorted(names.get(where, ())))
    for node in ast.walk(held.tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from _tile_block(held, body)


def _context(held: _Tile, parent: ast.AST) -> str:
    if isinstance(parent, ast.Call):
        return held.of(parent.func)
    return type(parent).__name__.lower()


def _tile_node(
    held: _Tile, node: ast.AST, where: str, callees: Sequence[str], names: Sequence[str]
) -> Iterator[Site]:
    match node:
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            start, stop = held.span(left)[1], held.span(right)[0]
            said = _BINARY[type(op)]
            for other in set(_BINARY.values()) - {said}:
                yield Site(f"operator:{said} {other}:{where}", start, stop, f" {other} ")
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARED:
            start, stop = held.span(left)[1], held.span(right)[0]
            said = _COMPARED[type(op)]
            for other in set(_COMPARED.values()) - {said}:
                yield Site(f"operator:{said} {other}:{where}", start, stop, f" {other} ")
        case ast.Constant(bool() | str()):
            return
        case ast.Constant(int() | float()):
            span = held.span(node)
            for form in _NUMBERS:
                yield Site(f"number:{form}:{where}", *span, form.format(n=held.of(node)))
        case ast.Call(func, args):
            name = held.of(func)
            for other in callees:
                if other != name:
                    yield Site(f"callee:{name}", *held.span(func), other)
            yield from _arguments([held.span(arg) for arg in args], held.text, name)
        case ast.Name(id, ast.Load()):
            for other in names:
                if other != id:
                    yield Site(f"name:{where}", *held.span(node), other)


def _tile_block(held: _Tile, body: Sequence[Any]) -> Iterator[Site]:
    spans = [held.span(item) for item in body]
    for item, span in zip(body, spans, strict=True):
        what = _statement(held, item)
        yield Site(f"statement removed:{what}", *span, "pass")
    for at in range(len(body) - 1):
        first, second = held.of(body[at]), held.of(body[at + 1])
        between = held.text[spans[at][1] : spans[at + 1][0]]
        kind = f"statements swapped:{_statement(held, body[at])}"
        yield Site(kind, spans[at][0], spans[at + 1][1], f"{second}{between}{first}")


def _statement(held: _Tile, item: ast.AST) -> str:
    match item:
        case ast.Expr(ast.Call(func)):
            return held.of(func)
        case ast.With([ast.withitem(expr)]):
            return held.of(expr)
    return type(item).__name__.lower()


def _arguments(spans: Sequence[tuple[int, int]], text: str, callee: str) -> Iterator[Site]:
    for at, (start, stop) in enumerate(spans):
        begin = spans[at - 1][1] if at else start
        end = stop if at or len(spans) == 1 else spans[1][0]
        yield Site(f"argument dropped:{callee}", begin, end, "")
    for (one, two), (three, four) in pairwise(spans):
        put = text[three:four] + text[two:three] + text[one:two]
        yield Site(f"arguments swapped:{callee}", one, four, put)


# ---------------------------------------------------------------------------------------- Ascend C


@cache
def _parser() -> Any:
    """Raises ImportError where tree-sitter is not installed."""
    import tree_sitter_cpp
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_cpp.language()))


def _cpp_sites(text: str) -> Iterator[Site]:
    # offsets are bytes: what is not ASCII, in comments, is put out first
    plain = text.encode("ascii", "replace")
    root = _parser().parse(plain).root_node
    nodes = list(_walk(root))
    calls = [node for node in nodes if node.type == "call_expression"]
    callees = sorted({_said(plain, node.child_by_field_name("function")) for node in calls})
    for node in nodes:
        yield from _cpp_node(plain, node, callees)


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _said(plain: bytes, node: Any) -> str:
    return plain[node.start_byte : node.end_byte].decode()


def _cpp_node(plain: bytes, node: Any, callees: Sequence[str]) -> Iterator[Site]:
    where = _cpp_context(plain, node)
    match node.type:
        case "binary_expression":
            sign = node.child_by_field_name("operator")
            said = _said(plain, sign)
            for other in _CPP_OPERATORS if said in _CPP_OPERATORS else ():
                yield Site(
                    f"operator:{said} {other}:{where}", sign.start_byte, sign.end_byte, other
                )
        case "number_literal":
            for form in _NUMBERS:
                put = form.format(n=_said(plain, node)).replace("//", "/")
                yield Site(f"number:{form}:{where}", node.start_byte, node.end_byte, put)
        case "call_expression":
            name = node.child_by_field_name("function")
            said = _said(plain, name)
            given = node.child_by_field_name("arguments").named_children
            spans = [(item.start_byte, item.end_byte) for item in given]
            yield from _arguments(spans, plain.decode(), _short(said))
            for other in callees:
                if other != said and other.count(".") == said.count("."):
                    kind = f"callee:{_short(said)}"
                    yield Site(kind, name.start_byte, name.end_byte, other)
        case "expression_statement":
            call = node.named_children[0] if node.named_children else node
            what = call.type
            if what == "call_expression":
                what = _short(_said(plain, call.child_by_field_name("function")))
            yield Site(f"statement removed:{what}", node.start_byte, node.end_byte, ";")
            yield Site(f"semicolon dropped:{what}", node.end_byte - 1, node.end_byte, "")
            after = node.next_named_sibling
            if after is not None and after.type == "expression_statement":
                one, two = _said(plain, node), _said(plain, after)
                between = plain[node.end_byte : after.start_byte].decode()
                kind = f"statements swapped:{what}"
                yield Site(kind, node.start_byte, after.end_byte, f"{two}{between}{one}")


def _cpp_context(plain: bytes, node: Any) -> str:
    parent = node.parent
    if parent is not None and parent.type == "argument_list" and parent.parent is not None:
        name = parent.parent.child_by_field_name("function")
        return _short(_said(plain, name)) if name is not None else parent.parent.type
    return parent.type if parent is not None else ""


def _short(callee: str) -> str:
    """`xQueue.DeQue<float>` -> DeQue."""
    return callee.partition("<")[0].rpartition(".")[2].rpartition("::")[2]
