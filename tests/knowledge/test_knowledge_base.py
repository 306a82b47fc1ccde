"""The store: search on two axes, credit by effect, history, files, several processes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.knowledge import Base, Outcome, Policy, Query, Use, open_knowledge
from npusmith.knowledge.edit import Edit, Template
from npusmith.knowledge.exchange import read_items, read_seeds, to_toml, write_items
from npusmith.knowledge.index import Axes
from npusmith.knowledge.item import Item, Proof, Rationale, State, Trigger
from npusmith.knowledge.tokens import TILE
from npusmith.timing.bottleneck import NAMES

GOOD, BAD = Outcome(3, True), Outcome(0, False, ("lang-unknown-op",))


def make(name: str, find: str, put: str, **trigger: object) -> Item:
    rules = {"aim": "repair", "codes": ("lang-unknown-op",), **trigger}
    return Item(
        name=name, title=name, trigger=Trigger(**rules),  # type: ignore[arg-type]
        rationale=Rationale(why="because", source="test"),
        template=Template(route=TILE, edits=(Edit(find=find, put=put),)),
    )  # fmt: skip


def ask(text: str, **more: object) -> Query:
    codes = more.pop("codes", ("lang-unknown-op",))
    return Query(route=TILE, aim="repair", text=text, codes=codes, **more)  # type: ignore[arg-type]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    with open_knowledge(tmp_path / "k.db", seeds=False) as found:
        yield found


def served(base: Base, query: Query, most: int = 6) -> list[str]:
    return [item.id.partition("@")[0] for item in base.search(query, most)]


def test_an_item_is_found_by_its_code_and_makes_its_edit(base: Base) -> None:
    base.add(make("fill", "fill($a, $s, $n)", "duplicate($a, $s, $n)"), State.VERIFIED, "test")
    (found,) = base.search(ask("fill(x, 1.0, 8)\n"))
    assert found.edit == "duplicate(x, 1.0, 8)\n"
    assert "why: because" in found.text and "source: test" in found.text


def test_only_verified_items_are_served(base: Base) -> None:
    base.add(make("new", "a($x)", "b($x)"), State.NEW, "test")
    base.add(make("old", "c($x)", "d($x)"), State.VERIFIED, "test")
    base.mark("old", State.RETIRED, "test")
    assert served(base, ask("a(1)\nc(1)\n")) == []
    base.mark("new", State.VERIFIED, "looked at")
    assert served(base, ask("a(1)\nc(1)\n")) == ["new"]
    assert base.history("new") == [("added", "test"), ("verified", "looked at")]


def test_items_of_another_chip_route_or_aim_are_left_out(base: Base) -> None:
    base.add(make("here", "a($x)", "b($x)", chips=("910B2",)), State.VERIFIED, "test")
    base.add(make("there", "a($x)", "c($x)", chips=("910B4",)), State.VERIFIED, "test")
    base.add(make("fast", "a($x)", "d($x)", aim="optimise"), State.VERIFIED, "test")
    assert served(base, ask("a(1)\n", chip="910B2")) == ["here"]
    other = Query(route="direct", aim="repair", text="a(1);", codes=("lang-unknown-op",))
    assert served(base, other) == []


def test_each_axis_finds_by_itself_and_both_can_be_switched_off(tmp_path: Path) -> None:
    limits = tuple(1.0 if name == "busy_MTE2" else 0.0 for name in NAMES)
    other = tuple(1.0 if name == "busy_V" else 0.0 for name in NAMES)
    items = [
        make("copies", "a($x)", "b($x)", aim="optimise", codes=("slow",), bottleneck=limits),
        make("vector", "a($x)", "c($x)", aim="optimise", codes=("slow",), bottleneck=other),
    ]
    with open_knowledge(tmp_path / "k.db", seeds=False) as base:
        for item in items:
            base.add(item, State.VERIFIED, "test")
    query = Query(route=TILE, aim="optimise", text="a(1)\n", bottleneck=other)
    for axes, first in (
        (Axes(words=False), "vector"),
        (Axes(hardware=False), "copies"),  # nothing tells them apart: the older one
        (Axes(words=False, hardware=False), None),
    ):
        with open_knowledge(tmp_path / "k.db", policy=Policy(axes)) as base:
            assert next(iter(served(base, query)), None) == first


def test_the_same_edit_again_is_merged_into_the_first(base: Base) -> None:
    base.add(make("one", "a($x, $y)", "b($x, $y)"), State.VERIFIED, "test")
    again = make("two", "a($p, $q)", "b($p, $q)", codes=("lang-operands",))
    assert base.add(again, State.VERIFIED, "test") == "one"
    assert base.item("one").item.trigger.codes == ("lang-unknown-op", "lang-operands")
    assert base.add(make("one", "z($x)", "y($x)"), State.VERIFIED, "test") == "one-2"


def test_what_is_not_verified_teaches_a_verified_item_nothing(base: Base) -> None:
    base.add(make("one", "a($x)", "b($x)", chips=("910B2",)), State.VERIFIED, "test")
    everywhere = make("two", "a($p)", "b($p)", codes=("lang-syntax",))
    base.add(everywhere, State.NEW, "from a file")
    assert base.item("one").item.trigger.codes == ("lang-unknown-op",)
    assert base.item("one").item.trigger.chips == ("910B2",)
    base.add(make("three", "c($x)", "d($x)", codes=("lang-syntax",)), State.NEW, "from a file")
    base.add(make("four", "c($y)", "d($y)"), State.VERIFIED, "replayed")
    kept = base.item("three")
    assert kept.state is State.VERIFIED and kept.item.trigger.codes == ("lang-unknown-op",)
    base.mark("one", State.RETIRED, "test")
    base.add(make("five", "a($x)", "b($x)"), State.VERIFIED, "once more")
    assert base.item("one").state is State.RETIRED and len(base.items()) == 2


@pytest.mark.parametrize(
    ("put", "after", "owed"),
    [
        ("b($x)", "b(1)\nz(2)\n", True),
        ("b($x)", "b(1)\ny(2)\n", True),  # and something else besides
        ("b($x)", "a(1)\ny(2)\nb(1)\n", False),  # its words, but not there
        ("b($x)", "y(2)\nb(7)\n", False),
        ("", "z(2)\n", True),
        ("", "a(1)\nz(3)\n", False),
        ("$x", "while 1:\n    1\n", False),  # a hole stands for anything: no trace of an edit
    ],
)
def test_only_an_edit_that_is_there_is_credited(
    base: Base, put: str, after: str, owed: bool
) -> None:
    base.add(make("item", "a($x)", put), State.VERIFIED, "test")
    before = "a(1)\nz(2)\n"
    base.credit(Use("k", ("item@x",), ask(before), before, after), BAD, GOOD)
    assert base.record("item").own.won == owed


def test_a_use_counts_once_and_only_when_its_edit_is_in_the_kernel(base: Base) -> None:
    base.add(make("fill", "fill($a)", "duplicate($a)"), State.VERIFIED, "test")
    use = Use("k1", ("fill@x",), ask("fill(x)\n"), "fill(x)\n", "duplicate(x)\n")
    base.credit(use, BAD, GOOD)
    base.credit(use, BAD, GOOD)
    assert (base.record("fill").own.won, base.record("fill").own.lost) == (1, 0)
    foreign = Use("k2", ("fill@x",), ask("fill(x)\n"), "fill(x)\n", "other(x)\n")
    base.credit(foreign, BAD, BAD)
    assert base.record("fill").own.lost == 0


def test_an_item_that_only_fails_is_retired(base: Base) -> None:
    base.add(make("harm", "a($x)", "b($x)"), State.VERIFIED, "test")
    for number in range(6):
        use = Use(f"k{number}", ("harm@x",), ask("a(1)\n"), "a(1)\n", "b(1)\n")
        base.credit(use, BAD, BAD)
    assert base.item("harm").state is State.RETIRED
    assert base.history("harm")[-1] == ("retired", "0 of 6 uses helped")


def test_two_items_that_contradict_each_other_are_kept_apart_by_what_was_said(base: Base) -> None:
    for name, put in (("first", "b($x)"), ("second", "c($x)")):
        base.add(make(name, "a($x)", put, codes=()), State.VERIFIED, "test")
    said = {"first": "'a' takes a buffer", "second": "'a' takes a number"}
    for name, put in (("first", "b(1)\n"), ("second", "c(1)\n")):
        for other, text in said.items():
            for number in range(4):
                query = ask("a(1)\n", messages=(text,))
                use = Use(f"{name} {other} {number}", (f"{name}@x",), query, "a(1)\n", put)
                base.credit(use, BAD, GOOD if name == other else BAD)
    for name, text in said.items():
        assert served(base, ask("a(1)\n", messages=(text,))) == [name]


def test_a_step_that_no_item_made_is_learnt(base: Base) -> None:
    before, after = (
        "with compute:\n    fill(x, 1.0, n)\n",
        "with compute:\n    duplicate(x, 1.0, n)\n",
    )
    query = ask(before, messages=("nothing is called 'fill'",), lines=(2,))
    base.credit(Use("k", (), query, before, after), BAD, GOOD)
    (found,) = base.search(ask("fill(top, 0.0, 8)\n", messages=("nothing is called 'fill'",)))
    assert found.edit == "duplicate(top, 0.0, 8)\n"
    base.credit(Use("k2", (), query, before, "something(else_)\n" * 300), BAD, GOOD)
    assert len(base.items()) == 1


def test_taking_out_what_is_refused_is_neither_credited_nor_served(base: Base) -> None:
    before, after = "load(a)\nfill(x)\n", "load(a)\n"
    query, further = ask(before, lines=(2,)), Outcome(2, False, ("wrong-values",))
    base.credit(Use("k", (), query, before, after), BAD, further)
    (kept,) = base.items()
    assert kept.state is State.NEW and base.search(query) == []
    base.credit(Use("k2", (), query, before, after), BAD, GOOD)  # another time it was right
    assert base.item(kept.item.name).state is State.VERIFIED
    base.credit(Use("k3", (kept.item.name,), query, before, after), BAD, further)
    assert base.record(kept.item.name).own.won == base.record(kept.item.name).own.lost == 0


def test_two_processes_see_what_the_other_adds(tmp_path: Path) -> None:
    with (
        open_knowledge(tmp_path / "k.db", seeds=False) as one,
        open_knowledge(tmp_path / "k.db") as two,
    ):
        one.add(make("a", "a($x)", "b($x)"), State.VERIFIED, "test")
        assert served(two, ask("a(1)\n")) == ["a"]
        two.mark("a", State.RETIRED, "test")
        assert served(one, ask("a(1)\n")) == []


def _fill(path: Path, count: int) -> None:
    with open_knowledge(path) as base:
        for number in range(count):
            item = make(f"item{number}", f"a{number}($x)", "b($x)")
            base.add(item, State.VERIFIED, "test")


def test_two_processes_that_begin_a_store_put_everything_in_once(tmp_path: Path) -> None:
    fork = get_context("fork")
    workers = [fork.Process(target=_fill, args=(tmp_path / "k.db", 20)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    seeds = {item.name for item in read_seeds()}
    with open_knowledge(tmp_path / "k.db") as base:
        names = [kept.item.name for kept in base.items()]
    assert sorted(names) == sorted(seeds | {f"item{number}" for number in range(20)})


def test_a_store_whose_writer_was_killed_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    worker = get_context("fork").Process(target=_fill, args=(path, 100_000))
    worker.start()
    with open_knowledge(path) as base:
        while len(base.items()) < len(read_seeds()) + 3:
            time.sleep(0.01)
    worker.kill()
    worker.join()
    with open_knowledge(path) as base:
        made = sum(kept.item.name.startswith("item") for kept in base.items())
        assert [base.item(f"item{number}").state for number in range(made)]
        assert made >= 3 and base.add(make("more", "m($x)", "n($x)"), State.NEW, "") == "more"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE items SET data = '{}'", "item a "),
        ("UPDATE items SET data = 'verified'", "item a "),
        ("UPDATE items SET state = 'believed'", "item a "),
        ("UPDATE items SET name = 'b'; UPDATE history SET item = 'b'", "item b "),
        ("UPDATE items SET data = replace(data, 'b($x)', 'b($y)')", "item a "),
        ("UPDATE uses SET context = 'often'", "a use of item a "),
        ("UPDATE uses SET context = '[]'", "a use of item a "),
        ("UPDATE uses SET effect = 'good'", "a use of item a "),
    ],
)
def test_a_store_that_was_edited_into_nonsense_names_the_item(
    tmp_path: Path, change: str, said: str
) -> None:
    with open_knowledge(tmp_path / "k.db", seeds=False) as base:
        base.add(make("a", "a($x)", "b($x)"), State.VERIFIED, "test")
        base.note("k", "a", ask("a(1)\n"), 1)
    with sqlite3.connect(tmp_path / "k.db") as link:
        link.executescript(change)
    with pytest.raises(NpusmithError) as damaged:
        open_knowledge(tmp_path / "k.db")
    assert damaged.value.code == "knowledge-damaged" and said in damaged.value.message


def test_a_file_of_something_else_and_half_a_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as link:
        link.execute("CREATE TABLE t (a)")
    with pytest.raises(NpusmithError) as refused:
        open_knowledge(path)
    assert refused.value.code == "knowledge-file"
    path = tmp_path / "cut.db"
    open_knowledge(path, seeds=False).__exit__()
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(NpusmithError) as refused:
        open_knowledge(path)
    assert refused.value.code == "store-damaged"


def test_what_is_exported_reads_back_the_same(tmp_path: Path) -> None:
    odd = 'a($x)  # \'\'\' "quotes" \\ and \t tabs\n\nb($x, "")'
    proof = Proof(before="x = 'a'\n" * 2, after="'''\x01'")
    item = make("odd", odd, "b($x)", dtypes=("float32",)).model_copy(
        update={"proofs": (proof,) * 2}
    )
    write_items([item, make("plain", "a($x)", "b($x)")], tmp_path)
    assert read_items(tmp_path) == [item, make("plain", "a($x)", "b($x)")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text + "\n[[", "no TOML"),
        (lambda text: text.replace('aim = "repair"', 'aim = "bake"'), "none of repair, optimise"),
        (lambda text: text.replace("lang-unknown-op", "lang-odd"), "no code of the table"),
        (lambda text: text.replace("b($x)", "b($y)"), "stands in the replacement"),
        (lambda text: text.replace("a($x)", "$x:blue"), "hole is of kind"),
        (lambda text: text.replace('route = "tile"', 'route = "cuda"'), "none of tile, direct"),
        (lambda text: text.replace("why =", "because ="), "Field required"),
        (lambda text: text.replace('name = "plain"', 'name = "../plain"'), "pattern"),
    ],
)
def test_a_file_that_was_edited_into_nonsense_says_what_is_wrong(
    tmp_path: Path, change: object, said: str
) -> None:
    path = tmp_path / "item.toml"
    path.write_text(change(to_toml(make("plain", "a($x)", "b($x)"))))  # type: ignore[operator]
    with pytest.raises(NpusmithError) as refused:
        read_items(path)
    assert refused.value.code == "knowledge-text"
    assert said in refused.value.message and refused.value.place.file == str(path)
