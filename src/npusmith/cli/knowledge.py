"""Look at what was learnt, and why it is believed; replay its proofs, settle its conflicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from npusmith.cli import agent
from npusmith.cli.exits import Exit, exit_of
from npusmith.cli.option_groups import expand_groups
from npusmith.cli.options import ChipName, Json
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps
from npusmith.target.chips import DEFAULT_CHIP, find_chip

if TYPE_CHECKING:
    from npusmith.agent.talk import Model
    from npusmith.knowledge.arbiter import Ruling
    from npusmith.knowledge.audit import Replay
    from npusmith.knowledge.base import Base, Kept


_ANSWER = 4096  # tokens of an answer, with what a reasoning model thinks before it


class Route(str, Enum):
    """What a kernel is written in."""

    TILE = "tile"
    DIRECT = "direct"


class Goal(str, Enum):
    """What an item is for."""

    REPAIR = "repair"
    OPTIMISE = "optimise"


Store = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FILE",
        help="The knowledge file; default: NPUSMITH_KNOWLEDGE, or knowledge.db in the user's data "
        "folder. A new one begins with the items that ship with npusmith.",
    ),
]  # fmt: skip
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of an item.")]
All = Annotated[bool, typer.Option("--all", help="Also unverified and retired items.")]


def show_list(every: All = False, store: Store = None, json: Json = False) -> Job:
    """List the items: what each is for, how its uses went."""

    def job(steps: Steps) -> Reply:
        with _open(store) as base:
            rows = [_row(base, kept) for kept in base.items() if every or _is_served(kept)]
        return Reply(Exit.PASS, {"items": rows}, lambda screen: _print_list(screen, rows))

    return job


def show(name: Name, store: Store = None, json: Json = False) -> Job:
    """Print one item: its text, its uses and its history."""

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.exchange import to_toml

        with _open(store) as base:
            kept = base.item(name)
            data = {
                **_row(base, kept),
                "item": kept.item.model_dump(mode="json"),
                "history": [list(row) for row in base.history(name)],
            }
            text = to_toml(kept.item.model_copy(update={"proofs": ()}))
            proofs = len(kept.item.proofs)

        def tell(screen: Screen) -> None:
            screen.line(f"{name}: {data['state']}, {proofs} proofs, {_uses(data)}")
            for line in text.splitlines():
                screen.line(f"  {line}")
            for what, detail in data["history"]:
                screen.line(f"{what}: {detail}")

        return Reply(Exit.PASS, data, tell)

    return job


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an item has to fit."""

    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The kernel; items that fit it come first."),
    ] = None
    route: Annotated[Route, typer.Option("--route", help="What the kernel is written in.")] = (
        Route.TILE
    )
    aim: Annotated[Goal, typer.Option("--aim", help="To repair a kernel or to speed it up.")] = (
        Goal.REPAIR
    )
    code: Annotated[
        list[str] | None,
        typer.Option("--code", metavar="CODE", help="Code of a finding; may be repeated."),
    ] = None
    line: Annotated[
        list[int] | None,
        typer.Option("--line", metavar="N", help="Line of a finding; may be repeated."),
    ] = None
    chip: ChipName = DEFAULT_CHIP


@expand_groups
def search(
    text: Annotated[
        str, typer.Argument(metavar="WORDS", help="Words of a message, or names of APIs.")
    ] = "",
    *,
    now: Situation,
    most: Annotated[int, typer.Option("--most", min=1, max=100, help="Items to print.")] = 6,
    store: Store = None,
    json: Json = False,
) -> Job:
    """Print what would be served in a situation."""
    row = find_chip(now.chip)

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.seam import Query

        query = Query(
            route=now.route.value, aim=now.aim.value, text=_read(now.file) if now.file else "",
            codes=tuple(now.code or ()), apis=tuple(text.split()), chip=row.name,
            messages=(text,) if text else (), lines=tuple(now.line or ()),
        )  # fmt: skip
        with _open(store) as base:
            served = base.search(query, most)
        rows = [{"item": item.id, "text": item.text, "edit": item.edit} for item in served]
        return Reply(Exit.PASS, {"served": rows}, lambda screen: _print_served(screen, rows))

    return job


def audit(
    most: Annotated[
        int, typer.Option("--most", metavar="N", min=1, help="Items to replay, drawn by the seed.")
    ] = 12,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the draw.")] = 0,
    retire: Annotated[
        bool, typer.Option("--retire", help="Retire items that do not hold any more.")
    ] = False,
    chip: ChipName = DEFAULT_CHIP,
    store: Store = None,
    json: Json = False,
) -> Job:
    """Replay the proofs of a sample on the twin, and say which still hold."""
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.audit import audit_items, sample_items
        from npusmith.knowledge.item import State
        from npusmith.sandbox.folder import temporary_folder

        with _open(store) as base, temporary_folder("npusmith-audit-") as folder:
            items = [kept.item for kept in base.items(State.VERIFIED)]
            found = []
            for replay in audit_items(sample_items(items, most, seed), row, Path(folder)):
                steps.step("replay", replay.item)
                found.append(replay)
            if retire:
                _retire(base, found)
        return _audited(found)

    return job


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where the files go, one for each item.")
    ],
    name: Annotated[
        list[str] | None, typer.Option("--item", metavar="NAME", help="An item; default: all.")
    ] = None,
    every: All = False,
    store: Store = None,
    json: Json = False,
) -> Job:
    """Write items as files that people can read and edit."""

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.exchange import write_items

        with _open(store) as base:
            kept = [base.item(one) for one in name] if name else base.items()
            items = [row.item for row in kept if name or every or _is_served(row)]
        written = [str(path) for path in write_items(items, folder)]
        return Reply(
            Exit.PASS, {"files": written},
            lambda screen: screen.line(f"{len(written)} files in {folder}"),
        )  # fmt: skip

    return job


def import_items(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A file of `export`, or a folder of them.")
    ],
    chip: ChipName = DEFAULT_CHIP,
    store: Store = None,
    json: Json = False,
) -> Job:
    """Read items, replay their proofs, and keep them.

    Nothing in a file is believed or executed: an item is served only when its proofs hold here.
    """
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.audit import audit_items
        from npusmith.knowledge.exchange import read_items
        from npusmith.knowledge.item import State
        from npusmith.sandbox.folder import temporary_folder

        items = read_items(path)  # all of them, before anything is kept
        found: list[Replay] = []
        with _open(store) as base, temporary_folder("npusmith-import-") as folder:
            for item in items:
                steps.step("replay", item.name)
                replays = list(audit_items([item], row, Path(folder)))
                holds = all(replay.holds and not replay.weak for replay in replays)
                state = State.VERIFIED if holds else State.NEW
                base.add(item, state, f"imported from {path.name}: {replays[0].why}")
                found += replays
        return _audited(found)

    return job


def learn(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="The kernel that failed, or was slow.")
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The kernel that is right.")],
    program: Annotated[
        Path | None,
        typer.Option(
            "--program",
            metavar="FILE",
            help="The tile program that says what is right; default: AFTER, where that is one.",
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="3x5003", help="Shape of each input, in their order."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="3x5003", help="Shape of each output, in their order."),
    ] = None,
    chip: ChipName = DEFAULT_CHIP,
    store: Store = None,
    json: Json = False,
) -> Job:
    """Make an item from a failure and its fix, or from a slow kernel and a faster one.

    With shapes it is judged on the twin and then served; without, it is kept unverified.
    """  # fmt: skip
    row = find_chip(chip)
    shapes = (_shapes(inputs or []), _shapes(outputs or []))

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.teach import teach

        with _open(store) as base:
            says = _read(program) if program else ""
            name = teach(base, _read(before), _read(after), _route(before), says, shapes, row)
            kept = base.item(name)
        data = {"item": name, "state": kept.state.value}
        return Reply(Exit.PASS, data, lambda screen: screen.line(f"{name}: {kept.state.value}"))

    return job


def rewind(
    kernel: Annotated[
        Path, typer.Argument(metavar="KERNEL", help="A kernel that is right and fast.")
    ],
    program: Annotated[
        Path | None,
        typer.Option(
            "--program",
            metavar="FILE",
            help="The tile program that says what is right; default: KERNEL, where that is one.",
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="1024x2048", help="Shape of each input, in their order."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="1024x2048", help="Shape of each output, in their order."),
    ] = None,
    chip: ChipName = DEFAULT_CHIP,
    store: Store = None,
    json: Json = False,
) -> Job:
    """Take one optimisation after another out of a kernel, and keep what its absence costs."""
    row = find_chip(chip)
    shapes = (_shapes(inputs or []), _shapes(outputs or []))

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.teach import unwind

        with _open(store) as base:
            says = _read(program) if program else ""
            found = list(unwind(base, _read(kernel), _route(kernel), says, shapes, row))
        rows = [{"without": r.name, "slowdown": r.slowdown, "item": r.item} for r in found]

        def tell(screen: Screen) -> None:
            for one in found:
                kept = one.item or "nothing kept"
                screen.line(f"without {one.name}: {one.slowdown:.2f} times as long; {kept}")
            screen.line(f"{sum(bool(one.item) for one in found)} items; times are estimates")

        return Reply(Exit.PASS, {"removals": rows}, tell)

    return job


@expand_groups
def settle(
    *,
    model: agent.ModelOptions,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be asked; ask and change nothing."),
    ] = False,
    chip: ChipName = DEFAULT_CHIP,
    store: Store = None,
    json: Json = False,
) -> Job:
    """List items that disagree, and settle it: by measured effect, else by a model.

    Without a model nothing is changed. What a model decides can be taken back: restore.
    """
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith.agent.models import Choice, open_model
        from npusmith.knowledge.arbiter import settle as rule
        from npusmith.sandbox.folder import temporary_folder

        choice = Choice(
            model=model.model, base_url=model.base_url, key_name=model.key_env,
            silence=model.silence, attempts=model.attempts, record=model.record,
            replay=model.replay,
        )  # fmt: skip
        asked = not dry_run and (model.model or model.base_url or model.replay)
        arbiter = _Asked(open_model(choice)) if asked else None
        found = []
        with _open(store) as base, temporary_folder("npusmith-settle-") as folder:
            for ruling in rule(base, arbiter, row, Path(folder), dry_run):
                steps.step("settle", f"{ruling.first}, {ruling.second}: {ruling.outcome}")
                found.append(ruling)
        return _settled(found)

    return job


def restore(
    name: Name, chip: ChipName = DEFAULT_CHIP, store: Store = None, json: Json = False
) -> Job:
    """Take back what a model decided about an item, if its proofs hold."""
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith.knowledge.arbiter import restore as take_back
        from npusmith.sandbox.folder import temporary_folder

        with _open(store) as base, temporary_folder("npusmith-restore-") as folder:
            take_back(base, name, row, Path(folder))
            data = _row(base, base.item(name))
        return Reply(Exit.PASS, data, lambda screen: screen.line(f"{name}: {data['state']}"))

    return job


COMMANDS: dict[str, Callable[..., Job]] = {
    "list": show_list,
    "show": show,
    "search": search,
    "audit": audit,
    "export": export,
    "import": import_items,
    "learn": learn,
    "rewind": rewind,
    "settle": settle,
    "restore": restore,
}


# ------------------------------------------------------------------------------------------ below


def _open(store: Path | None) -> Base:
    from npusmith.knowledge import default_path, open_knowledge

    return open_knowledge(store or default_path())


def _read(path: Path) -> str:
    from npusmith.knowledge.teach import read_kernel

    return read_kernel(path)


def _route(path: Path) -> str:
    return "tile" if path.suffix == ".py" else "direct"


def _shapes(texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """`3x5003` is (3, 5003); `-` is a tensor without dimensions."""
    found = []
    for text in texts:
        parts = [] if text == "-" else text.split("x")
        if not all(part.isdecimal() for part in parts):
            raise typer.BadParameter(f"a shape is written 3x5003, not {text[:40]!r}")
        found.append(tuple(map(int, parts)))
    return tuple(found)


def _is_served(kept: Kept) -> bool:
    return kept.state.value == "verified"


def _row(base: Base, kept: Kept) -> dict[str, Any]:
    own = base.record(kept.item.name).own
    return {
        "name": kept.item.name,
        "title": kept.item.title,
        "aim": kept.item.trigger.aim,
        "route": kept.item.route,
        "origin": kept.item.origin,
        "state": kept.state.value,
        "codes": list(kept.item.trigger.codes),
        "proofs": len(kept.item.proofs),
        "helped": int(own.won),
        "failed": int(own.lost),
    }


def _uses(row: dict[str, Any]) -> str:
    used = row["helped"] + row["failed"]
    return f"helped in {row['helped']} of {used} uses" if used else "not used yet"


def _print_list(screen: Screen, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        screen.line(
            f"{row['name']} ({row['aim']}, {row['route']}, {row['origin']}): {row['title']}"
        )
        screen.line(f"  {row['state']}; {row['proofs']} proofs; {_uses(row)}")
    screen.line(f"{len(rows)} items")


def _print_served(screen: Screen, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        fits = "fits this kernel" if row["edit"] else "does not fit as it is"
        screen.line(f"{row['item']}: {fits}")
        for line in row["text"].splitlines():
            screen.line(f"  {line}")


class _Asked:
    """A model as an arbiter: one question, the most likely answer, none where it was cut off."""

    def __init__(self, model: Model) -> None:
        self.name, self._model = model.name, model

    def ask(self, question: str) -> str:
        from npusmith.agent.extract import after_thoughts
        from npusmith.agent.talk import Message, Request

        message = Message(role="user", content=question)
        request = Request(messages=(message,), temperature=0.0, max_tokens=_ANSWER)
        answer = self._model.ask(request)
        return "" if answer.finish == "length" else after_thoughts(answer.text)


def _settled(found: Sequence[Ruling]) -> Reply:
    """The exit code is that of the first error: a model that is away, an answer that is none."""
    from dataclasses import asdict

    open_ = sum(row.outcome == "undecided" for row in found)

    def tell(screen: Screen) -> None:
        for row in found:
            code = f" [{row.code}]" if row.code else ""
            screen.line(f"{row.first} and {row.second}: {row.how}")
            screen.line(f"  measured: {row.effect}")
            screen.line(f"  {row.outcome}{code}: {row.why}")
            for line in row.question.splitlines():
                screen.line(f"    {line}")
        screen.line(f"{len(found)} conflicts, {open_} undecided")

    code = next((row.code for row in found if row.code), "")
    data = {"conflicts": [asdict(row) for row in found], "undecided": open_}
    return Reply(exit_of(code) if code else Exit.PASS, data, tell)


def _retire(base: Base, found: Sequence[Replay]) -> None:
    from npusmith.knowledge.item import State

    for replay in found:
        if not replay.holds:
            base.mark(replay.item, State.RETIRED, f"audit: {replay.why}")


def _audited(found: Sequence[Replay]) -> Reply:
    rows = [
        {"item": row.item, "holds": row.holds, "judged": not row.weak, "why": row.why}
        for row in found
    ]
    good = sum(row.holds for row in found)

    def tell(screen: Screen) -> None:
        for row in found:
            screen.line(f"{'holds' if row.holds else 'FAILS'}  {row.item}: {row.why}")
        screen.line(f"{good} of {len(found)} proofs hold")

    code = Exit.PASS if good == len(found) else Exit.FAILED
    return Reply(code, {"replays": rows, "hold": good, "of": len(found)}, tell)
