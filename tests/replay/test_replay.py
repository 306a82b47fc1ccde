"""The replay says same of what has not changed, and names what has become slower, wrong or lost."""

from __future__ import annotations

from typing import Any

import pytest

# quick to write, of different kinds
SAMPLE = (
    "activation/softmax@true", "broadcast/clamp_broadcast@small.float16", "examples/gelu@true",
    "examples/swish_fp16@true", "few_rows/softmax@4x65536", "loss/mse_loss@true",
    "math/cumsum@true", "normalization/layer_norm@true", "optimizer/adam@true",
    "pooling/max_pooling_1d@true", "reduce/mean_reduction_over_a_dimension@true",
    "mhc/mhc_post@1024x4x5120",
)  # fmt: skip


def changes_of(replay: Any, frozen: Any, **made_up: dict[str, Any]) -> list[Any]:
    """What `compare` says of these cases, whose records are changed so."""
    cases, records = frozen
    before = {name: records[name].model_copy(update=found) for name, found in made_up.items()}
    return list(replay.compare(cases, before))


def test_the_sample_is_what_its_record_says(replay: Any, frozen: Any) -> None:
    changes = changes_of(replay, frozen, **{name: {} for name in SAMPLE})
    assert [item.before.case for item in changes] == sorted(SAMPLE)
    others = [
        f"{item.before.case}: {item.kind.value}" for item in changes if item.kind.name != "SAME"
    ]
    assert not others, "`python runs/replay.py compare` says more"
    assert not any(replay.is_bad(item, []) for item in changes)


# A record of another program: it is written, timed and judged anew.
ONE = "activation/softmax@true"


def test_a_program_that_takes_longer_than_its_record_says_needs_a_reason(
    replay: Any, frozen: Any
) -> None:
    now = frozen[1][ONE].us
    (change,) = changes_of(replay, frozen, **{ONE: {"digest": "of another", "us": now / 2}})
    assert change.kind is replay.Kind.SLOWER
    assert change.ratio == pytest.approx(2.0)
    assert change.now == frozen[1][ONE]
    assert replay.is_bad(change, [])
    assert not replay.is_bad(change, [reason(replay, 2.1)])
    assert replay.is_bad(change, [reason(replay, 1.9)])
    text = "\n".join(replay.report([change], []))
    assert f"| {ONE} | **slower** |" in text
    assert "2.000" in text


def test_a_program_that_is_faster_or_as_fast_is_named_and_not_bad(replay: Any, frozen: Any) -> None:
    now = frozen[1][ONE].us
    faster = changes_of(replay, frozen, **{ONE: {"digest": "of another", "us": now * 2}})
    other = changes_of(replay, frozen, **{ONE: {"digest": "of another"}})
    assert [item.kind.name for item in (*faster, *other)] == ["FASTER", "AS_FAST"]
    assert not any(replay.is_bad(item, []) for item in (*faster, *other))


def test_a_lost_verdict_and_a_new_refusal_are_bad_whatever_the_reasons_say(replay: Any) -> None:
    before = replay.Record(case="a@b", digest="1", us=2.0, verdict="right", judged="somehow")
    wrong = before.model_copy(update={"digest": "2", "verdict": "wrong: output 0"})
    untimed = before.model_copy(update={"digest": "2", "us": None, "untimed": "plan-time"})
    refused = replay.Record(case="a@b", refused="plan-op")
    kinds = {"LOST": (wrong, untimed), "REFUSED": (refused,)}
    for kind, records in kinds.items():
        for now in records:
            change = replay.compared(before, now)
            assert change.kind.name == kind
            assert replay.is_bad(change, [reason(replay, 9.0, "*")])
    assert not replay.is_bad(replay.compared(refused, before), [])
    assert replay.compared(refused, before).kind is replay.Kind.WRITTEN


def test_a_digest_sees_code_and_nothing_else(replay: Any) -> None:
    text = '"""doc"""\n\nTILE = 64\n\ndef k(x: input(float32)):\n    """what"""\n    y = 1\n'
    other = text.replace("doc", "other").replace('    """what"""\n', "    # a comment\n")
    assert replay.digest(text) == replay.digest(other)
    assert replay.digest(text) != replay.digest(text.replace("64", "65"))


def test_a_program_that_computes_something_else_is_judged_wrong(replay: Any, frozen: Any) -> None:
    cases = frozen[0]
    import replay_judge

    chip = replay.find_chip(replay.CHIP)
    right, other = cases["activation/relu@small"], cases["activation/sigmoid@small"]
    plan = replay.write(right.graph, "op_custom", chip)
    assert replay_judge.judge(plan, right.graph, right.draws, chip) == "right"
    assert replay_judge.judge(plan, other.graph, other.draws, chip).startswith("wrong: output 0")


def reason(replay: Any, up_to: float, cases: str = ONE) -> Any:
    return replay.Reason(cases=cases, up_to=up_to, why="a test")
