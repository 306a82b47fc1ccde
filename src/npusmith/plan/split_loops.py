"""Loops over tiles that are split by positions (index_sets.py), or whole: what takes less time."""

from __future__ import annotations

from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.plan.decisions import Decision, Decisions
from npusmith.plan.estimate import time_of
from npusmith.plan.index_sets import compares_positions
from npusmith.plan.lane_space import WHOLE, RowForm, Split, Splits
from npusmith.plan.lanes import Written, write_with
from npusmith.plan.read import Meaning
from npusmith.target.chips import Chip


def write_lanes(
    meaning: Meaning, name: str, chip: Chip, decisions: Decisions, form: RowForm = WHOLE
) -> Written:
    """The program of a graph without large reductions. Raises PlanError for others.

    Of loops that are split by positions, and whole ones, those that take less time by the estimate;
    what windows take in is held on chip for whole loops. `form`: of rows that are put in order.
    """
    whole = Splits()
    if meaning.reader.windows or not compares_positions(meaning.roots):
        return write_with(meaning, name, chip, decisions, whole, form)
    graph, refused = meaning.reader.graph, dict[Split, PlanError]()
    found: dict[Split, tuple[float, Written, dict[str, Decision]]] = {}

    def attempt(splits: Splits) -> None:
        own = replace(decisions, made=dict(decisions.made))
        try:
            written = write_with(meaning, name, chip, own, splits, form)
        except PlanError as error:
            refused[splits.where] = error.with_traceback(None)
            return
        found[splits.where] = time_of(*written[:2], graph, chip), written, own.made

    attempt(anywhere := Splits(Split.ANYWHERE))
    if anywhere.made:  # else whole loops are the same
        attempt(whole)
        if not _is_known(whole, anywhere):
            attempt(Splits(Split.OUTSIDE))
    if not found:
        raise refused.pop(next(where for where in Split if where in refused))
    in_order = (found[where] for where in Split if where in found)
    _, best, decisions.made = min(in_order, key=lambda item: item[0])
    return best


def _is_known(whole: Splits, anywhere: Splits) -> bool:
    """Whether loops that are split outside of tiles alone are like one of these."""
    like_whole = whole.tried <= anywhere.tried and not anywhere.outside & whole.tried
    return like_whole or not anywhere.inside
