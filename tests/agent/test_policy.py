"""The policy alone: from what was judged to the next turn."""

from __future__ import annotations

from npusmith.agent.assessment import Assessment, Step
from npusmith.agent.policy import Ask, Attempt, Stop, Terms, better, decide, rank
from npusmith.agent.route import Goal

FAILED, PARSED = Assessment(step=Step.READ), Assessment(step=Step.PARSED)


def right(us: float | None = None, bound: float | None = None) -> Assessment:
    return Assessment(step=Step.RACE_FREE, correct=True, share=1.0, us=us, bound_us=bound)


def attempts(*rows: tuple[Assessment, int | None], first: int = 2) -> list[Attempt]:
    return [
        Attempt(number, parent, Goal.WRITE if number < first else Goal.REPAIR, assessment)
        for number, (assessment, parent) in enumerate(rows)
    ]


TERMS = Terms(samples=2, rounds=4, patience=2)


def test_first_the_drafts_at_once() -> None:
    assert decide([], TERMS) == (Ask(Goal.WRITE), Ask(Goal.WRITE))
    assert decide(attempts((FAILED, None)), TERMS) == (Ask(Goal.WRITE),)


def test_then_the_best_is_repaired_and_of_equals_the_first() -> None:
    assert decide(attempts((FAILED, None), (PARSED, None)), TERMS) == (Ask(Goal.REPAIR, 1),)
    assert decide(attempts((PARSED, None), (PARSED, None)), TERMS) == (Ask(Goal.REPAIR, 0),)


def test_a_right_one_ends_the_run_unless_speed_is_wanted() -> None:
    rows = attempts((FAILED, None), (right(10.0, 1.0), None))
    assert decide(rows, TERMS) == Stop("target")
    assert decide(rows, TERMS.model_copy(update={"optimise": True})) == (Ask(Goal.OPTIMISE, 1),)


def test_at_the_roof_there_is_nothing_to_gain() -> None:
    terms = TERMS.model_copy(update={"optimise": True})
    assert decide(attempts((FAILED, None), (right(1.1, 1.0), None)), terms) == Stop("target")


def test_a_candidate_is_given_up_after_fruitless_children_and_the_next_one_has_its_turn() -> None:
    rows = attempts((PARSED, None), (FAILED, None), (FAILED, 0), (FAILED, 0))
    assert decide(rows, TERMS) == (Ask(Goal.REPAIR, 1),)


def test_a_better_child_is_gone_on_from() -> None:
    rows = attempts((FAILED, None), (FAILED, None), (PARSED, 0))
    assert decide(rows, TERMS) == (Ask(Goal.REPAIR, 2),)


def test_where_all_is_given_up_a_draft_is_written_anew() -> None:
    terms = Terms(samples=1, rounds=9, patience=1)
    rows = [(PARSED, None), (FAILED, 0), (FAILED, 1)]
    assert decide(attempts(*rows, first=1), terms) == (Ask(Goal.WRITE),)
    assert decide(attempts(*rows, (FAILED, None), first=1), terms) == (Ask(Goal.REPAIR, 3),)


def test_the_run_stops_when_nothing_gets_faster_or_all_rounds_are_used() -> None:
    terms = Terms(samples=1, rounds=9, patience=1, optimise=True)
    rows = attempts((right(9.0, 1.0), None), (FAILED, 0), first=1)
    assert decide(rows, terms) == Stop("stagnation")
    assert decide(attempts(*[(FAILED, None)] * 6), TERMS) == Stop("rounds")


def test_an_edit_of_the_knowledge_store_is_no_call() -> None:
    rows = [
        *attempts((PARSED, None), (FAILED, None)),
        Attempt(2, 0, Goal.REPAIR, FAILED, "edited", asked=False),
        Attempt(3, 0, Goal.REPAIR, FAILED, "edited again", asked=False),
    ]
    assert decide(rows, TERMS) == (Ask(Goal.REPAIR, 0),)


def test_faster_means_by_more_than_two_percent() -> None:
    assert better(right(9.7), right(10.0))
    assert not better(right(9.9), right(10.0))
    assert not better(FAILED, right(10.0))
    assert better(right(), FAILED)


def test_the_fastest_right_one_is_the_best() -> None:
    rows = attempts((right(10.0), None), (right(9.0), None), (PARSED, None))
    assert [item.number for item in rank(rows)] == [1, 0, 2]
