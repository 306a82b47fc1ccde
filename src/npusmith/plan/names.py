"""Names that tensors may take in a program: the graph's own where they are free."""

from __future__ import annotations

import re

from npusmith.lang.words import why_reserved

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
    clean = as_identifier(name)
    while clean in used or is_ours(clean):
        clean += "_x"
    used.add(clean)
    return clean


def as_identifier(name: str) -> str:
    """A graph's name as one of the tile language, which may be taken."""
    clean = re.sub(r"_+", "_", re.sub(r"\W", "_", name, flags=re.ASCII)).strip("_") or "x"
    return f"x{clean}" if clean[0].isdigit() else clean


def is_ours(name: str) -> bool:
    """Whether no tensor may have that name."""
    return bool(why_reserved(name) or _OURS.fullmatch(name))
