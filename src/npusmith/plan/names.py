"""Names that tensors may take in a program: the graph's own where they are free."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from npusmith.ir.nodes import (
    Assign,
    Combine,
    Expr,
    For,
    Load,
    Name,
    Op,
    Span,
    Stmt,
    Store,
    Value,
    View,
)
from npusmith.lang.words import why_reserved
from npusmith.lower.rebuild import map_children, map_operands

# Names that the host function and the loops use for themselves.
_OURS = re.compile(
    r"(size|rows|cols|batch|cores|width|first|at|n|lanes|turn|host|line|row|col|b|i|back|TILE|FOLDS"
    r"|lines|brief|have|TUNED|near|span|most_cores)"
    r"|(fair|limit|extra|part|units|pieces|tile|tiles|piece|s|m|t|acc|spare|sum_?|max|min|prod|top_|low_|v_|product_|carry_|total_|chunks?|base|lone)\d*"
    r"|(dim|inner|cut|held|height|blocks|doublings|lines|fair|pieces)(_all|_)?\d*x?"
    r"|(around|places|count|columns|parts|spans?|strips?|together|copied|stretch(es)?)\d*"
    r"|whole_rows|low|high|left|wide|some|begin|spot|there|seen|one"
    r"|(chunked|most_chunks|most_pieces|piece_elements|line_tiles|tile_elements|fair_tile)\d*"
    r"|(dealt|chunked)_time\d*"
    r"|core_blocks|unit|block|group|inside|matrix|deep|depth|row_blocks|col_blocks|(batch|step)\d+|tap"
    r"|[abc]_l[01]|(left|right|out)_start"
    r"|chunk_.*|.*(_lines|_per_core|_at|_from|_in|_out|_copy|_back)\d*"
)


def tensor_name(name: str, used: set[str]) -> str:
    """A legal name for a tensor that nothing else in the program has; takes it."""
    clean = re.sub(r"_+", "_", re.sub(r"\W", "_", name, flags=re.ASCII)).strip("_") or "x"
    if clean[0].isdigit():
        clean = f"x{clean}"
    while clean in used or why_reserved(clean) or _OURS.fullmatch(clean):
        clean += "_x"
    used.add(clean)
    return clean


def renamed(expr: Expr, new: Mapping[str, str]) -> Expr:
    """The same expression over other names of variables and buffers."""
    match expr:
        case Name(name):
            return Name(new.get(name, name))
        case Value(View(buffer, offset)):
            return Value(View(new.get(buffer, buffer), renamed(offset, new)))
        case _:
            return map_children(expr, lambda item: renamed(item, new))


def with_names(stmt: Stmt, new: Mapping[str, str]) -> Stmt:
    """The same statement over other names of variables, buffers and tensors."""

    def called(name: str) -> str:
        return new.get(name, name)

    def view(item: View) -> View:
        return replace(item, buffer=called(item.buffer))

    def span(item: Span) -> Span:
        return replace(item, tensor=called(item.tensor))

    stmt = map_operands(stmt, lambda expr: renamed(expr, new))
    match stmt:
        case Assign(target):
            return replace(stmt, target=called(target))
        case For(var):
            return replace(stmt, var=called(var))
        case Load(dst, src):
            return replace(stmt, dst=view(dst), src=span(src))
        case Store(dst, src):
            return replace(stmt, dst=span(dst), src=view(src))
        case Combine(_, dst, src, scratch):
            return replace(stmt, dst=view(dst), src=view(src), scratch=called(scratch))
        case Op(_, views):
            return replace(stmt, views=tuple(view(item) for item in views))
        case _:
            return stmt
