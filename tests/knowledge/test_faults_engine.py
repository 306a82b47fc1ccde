"""Faults of the engine: every one changes a text at one place, kinds follow from the tree."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npusmith.lang import parse

ROOT = Path(__file__).parents[2]
TILE = (ROOT / "tests/kernels/softmax_three_pass.tile.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "runs"))
    import faults_engine

    yield faults_engine
    sys.path.remove(str(ROOT / "runs"))


def test_a_tile_program_has_hundreds_of_faults_of_many_kinds(engine: Any) -> None:
    found = engine.sites(TILE, "tile")
    kinds = {site.kind for site in found}
    assert len(found) > 1000 and len(kinds) > 80
    assert len({kind.partition(":")[0] for kind in kinds}) == 8
    assert all(site.changed(TILE) != TILE for site in found)
    unseen = sum(map(engine.is_unseen, kinds)) / len(kinds)
    assert 0.2 < unseen < 0.5
    assert found == engine.sites(TILE, "tile")  # nothing is drawn here


def test_a_change_touches_its_place_alone(engine: Any) -> None:
    for site in random.Random(3).sample(engine.sites(TILE, "tile"), 50):
        text = site.changed(TILE)
        assert text.startswith(TILE[: site.start]) and text.endswith(TILE[site.stop :])
    swapped = next(
        site for site in engine.sites(TILE, "tile") if site.kind == "arguments swapped:adds"
    )
    assert TILE[swapped.start : swapped.stop] == "et, xt" and swapped.put == "xt, et"
    assert parse(swapped.changed(TILE)) != parse(TILE)


def test_ascend_c_is_changed_at_nodes_of_its_tree(engine: Any) -> None:
    pytest.importorskip("tree_sitter_cpp")
    text = (ROOT / "tests/agent/played/attention.asc").read_text(encoding="utf-8")
    found = engine.sites(text, "direct")
    kinds = {site.kind for site in found}
    assert len(kinds) > 150
    assert {"statement removed:EnQue", "semicolon dropped:EnQue", "argument dropped:ReduceSum",
            "callee:Mul", "statements swapped:EnQue"} <= kinds  # fmt: skip
    enque = next(site for site in found if site.kind == "statement removed:EnQue")
    assert text[enque.start : enque.stop] == "queue.EnQue(local);"
