"""Items as files that people read and edit: TOML, parsed and never executed.

`write_items(items, folder)` writes one file for each, `read_items(path)` reads a file or a folder.
Seeds are shorter: their proofs say what is changed in the kernel of a case that ships with them.
Raises knowledge-text with the file and what is wrong in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npusmith.errors import NpusmithError, Place
from npusmith.knowledge.edit import Edit, Template
from npusmith.knowledge.item import Item, Proof, Rationale, Trigger
from npusmith.knowledge.tokens import TILE
from npusmith.knowledge.trial import Bench, Case
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.refusal import named_errors
from npusmith.target.chips import DEFAULT_CHIP, find_chip

SUFFIX = ".toml"
_MOST_BYTES = 1 << 20
_MOST_FILES = 100_000


def write_items(items: list[Item], folder: Path) -> list[Path]:
    """One file for each item; a file of that name is replaced."""
    written = []
    with named_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for item in items:
            path = folder / f"{item.name}{SUFFIX}"
            path.write_text(to_toml(item), encoding="utf-8")
            written.append(path)
    return written


def read_items(path: Path) -> list[Item]:
    """The items of a file, or of all .toml files of a folder."""
    if path.is_dir():
        files = sorted(path.glob(f"*{SUFFIX}"))[:_MOST_FILES]
        return [_read_item(file) for file in files]
    return [_read_item(path)]


def to_toml(item: Item) -> str:
    """The text of an item's file; reading it gives the item again."""
    lines: list[str] = []
    _table(item.model_dump(mode="json", exclude_defaults=True), "", lines)
    return "\n".join(lines).strip("\n") + "\n"


def _read_item(path: Path) -> Item:
    data = _load(path)
    try:
        return Item.model_validate(data)
    except ValidationError as error:
        raise _refused(path, error) from error


def _load(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise NpusmithError("file-missing", f"there is no file {path}", Place(str(path)))
        if path.stat().st_size > _MOST_BYTES:
            raise NpusmithError("knowledge-text", "the file is larger than 1 MB", Place(str(path)))
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        message = f"the file is no TOML text: {error}"
        raise NpusmithError("knowledge-text", message[:300], Place(str(path))) from error


def _refused(path: Path, error: ValidationError) -> NpusmithError:
    """The first thing that is wrong, and how many more there are."""
    first, more = error.errors()[0], error.error_count() - 1
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    rest = f", and {more} more" if more else ""
    said = str(first["msg"]).removeprefix("Value error, ")
    seen = str(first.get("input", ""))[:120]
    message = f"{where}: {said}{rest}"
    return NpusmithError("knowledge-text", message, Place(str(path)), seen=seen)


# ------------------------------------------------------------------------------------------ TOML


def _table(data: Mapping[str, Any], name: str, lines: list[str]) -> None:
    """Plain values first, then tables and lists of tables."""
    inner = {key: value for key, value in data.items() if _is_inner(value)}
    if name and (len(inner) < len(data) or not inner):
        lines += ["", f"[{name}]"]
    lines += [f"{key} = {_value(value)}" for key, value in data.items() if key not in inner]
    for key, value in inner.items():
        whole = f"{name}.{key}" if name else key
        if isinstance(value, Mapping):
            _table(value, whole, lines)
            continue
        for row in value:
            lines += ["", f"[[{whole}]]"]
            part: list[str] = []
            _table(row, whole, part)
            lines += [line for line in part if line not in (f"[{whole}]",)][_lead(part) :]


def _lead(part: list[str]) -> int:
    return 1 if part and part[0] == "" else 0


def _is_inner(value: object) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(part) for part in value)}]"
    if isinstance(value, Mapping):
        parts = ", ".join(f"{key} = {_value(part)}" for key, part in value.items())
        return f"{{ {parts} }}"
    return repr(value)


def _string(text: str) -> str:
    """In lines where that keeps every character, else with escapes."""
    plain = all(char == "\n" or char == "\t" or (char >= " " and char != "\x7f") for char in text)
    if "\n" in text and plain and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    marks = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    out = "".join(
        marks.get(char) or (char if char >= " " and char != "\x7f" else f"\\u{ord(char):04x}")
        for char in text
    )
    return f'"{out}"'


# ----------------------------------------------------------------------------------------- seeds


def read_seeds() -> list[Item]:
    """The items that ship with npusmith."""
    return [item for name in ("tile", "direct") for item in _seeds_of(name)]


def _seeds_of(route: str) -> Iterator[Item]:
    data = tomllib.loads(_seed_text(f"{route}{SUFFIX}"))
    for row in data["seed"]:
        proof = row["proof"]
        yield Item(
            name=f"{route}-{row['name']}",
            title=row["title"],
            trigger=Trigger(
                aim=row["aim"],
                codes=tuple(code for code in row.get("codes", ())),
                words=tuple(row.get("words", ())),
                apis=tuple(row.get("apis", ())),
            ),
            rationale=Rationale(why=row["why"], constraint=row["constraint"], source=row["source"]),
            template=Template(
                route=route,
                edits=(Edit(find=row["find"], put=row["put"], every=row.get("every", False)),),
                where=tuple(row.get("where", ())),
            ),
            proofs=(_proof(route, proof, row["aim"]),),
            origin="seed",
        )


def _proof(route: str, proof: Mapping[str, Any], aim: str) -> Proof:
    """The kernel of the case, with the one change that the item must undo."""
    case = _cases()[proof["case"]]
    good = case.program if route == TILE else _kernel(proof["case"])
    assert proof["cut"] in good, f"{proof['case']} does not hold {proof['cut']!r}"
    before = good.replace(proof["cut"], proof["by"], 1)
    gain = proof.get("gain", 1.05) if aim == "optimise" else 1.0
    return Proof(case=case, before=before, gain=gain)


@cache
def _cases() -> dict[str, Case]:
    shapes = tomllib.loads(_seed_text("cases.toml"))
    return {
        name: Case(name=name, program=_seed_text(f"{name}.tile"), **row)
        for name, row in shapes.items()
    }


@cache
def _kernel(name: str) -> str:
    with temporary_folder("npusmith-seed-") as folder:
        return Bench(_cases()[name], find_chip(DEFAULT_CHIP), Path(folder)).kernel


def _seed_text(name: str) -> str:
    return (resources.files("npusmith.knowledge") / "seeds" / name).read_text(encoding="utf-8")
