"""`npusmith checks`: what the twin looks for, out of errors.CODES and twin.checklist."""

from __future__ import annotations

from npusmith.cli.exits import Exit
from npusmith.cli.markdown import prose
from npusmith.cli.markdown import row as table_row
from npusmith.cli.reply import Reply
from npusmith.cli.screen import Screen
from npusmith.errors import CODES, Code, NpusmithError
from npusmith.lang.words import closest
from npusmith.twin.checklist import CHECKLIST, items_of


def checked() -> list[Code]:
    """The codes that some item of the checklist names, in the order of the table."""
    named = {code for item in CHECKLIST for code in item.codes}
    return [row for row in CODES.values() if row.name in named]


def explain_code(code: str) -> Reply:
    """One row of errors.CODES, with the items of the checklist that it belongs to.

    Raises usage for a code that there is not.
    """
    row = CODES.get(code)
    if row is None:
        near = closest(code, list(CODES))
        raise NpusmithError(
            "usage", f"no error or finding has the code {code[:80]}", seen=code[:80],
            legal=f"codes like {near}" if near else "the codes of docs/errors.md",
            hint="npusmith checks lists the twin's, docs/errors.md all of them",
        )  # fmt: skip
    items = [item for item in CHECKLIST if item.name in items_of(code)]

    def tell(screen: Screen) -> None:
        screen.line(f"{row.name} ({row.level.value}): {row.meaning}")
        screen.line(f"  legal: {row.legal}")
        screen.line(f"  try: {row.hint}")
        for item in items:
            screen.line(f"  checklist {item.name}: {item.what}")
            if item.open:
                screen.line(f"    not seen: {item.open}")

    return Reply(Exit.PASS, _data(row), tell)


def _data(row: Code) -> dict[str, object]:
    return {
        "code": row.name,
        "level": row.level.value,
        "meaning": row.meaning,
        "legal": row.legal,
        "hint": row.hint,
        "checklist": list(items_of(row.name)),
    }


def list_checks() -> Reply:
    """Every check as data and as text."""
    rows = [_data(row) for row in checked()]
    items = [
        {"id": item.name, "what": item.what, "codes": list(item.codes), "open": item.open}
        for item in CHECKLIST
    ]
    return Reply(Exit.PASS, {"checks": rows, "checklist": items}, _show)


def checks_page(stamp: str) -> str:
    """docs/checks.md."""
    lines = [
        "# Checks of the twin\n",
        stamp,
        "How the checks work is told in [sanitizer.md](sanitizer.md). An error fails a verdict; a "
        "warning does so under `--strict`; notes come with `--notes`.\n",
        "| code | level | what it means | legal | try | items |",
        "|---|---|---|---|---|---|",
        *(_check(row) for row in checked()),
        "\n## The checklist\n",
        "| item | what | codes | not seen |",
        "|---|---|---|---|",
    ]
    for item in CHECKLIST:
        codes = ", ".join(f"`{code}`" for code in item.codes) or "none"
        lines.append(table_row(item.name, prose(item.what), codes, prose(item.open)))
    return "\n".join(lines) + "\n"


def _check(row: Code) -> str:
    texts = (prose(row.meaning), prose(row.legal), prose(row.hint))
    return table_row(f"`{row.name}`", row.level.value, *texts, " ".join(items_of(row.name)))


def _show(screen: Screen) -> None:
    for row in checked():
        items = " ".join(items_of(row.name))
        screen.line(f"{row.name} ({row.level.value}; {items}): {row.meaning}")
        screen.line(f"  legal: {row.legal}")
        screen.line(f"  try: {row.hint}")
    gaps = [item for item in CHECKLIST if item.open]
    screen.line("not seen:")
    for item in gaps:
        screen.line(f"  {item.name} {item.what}: {item.open}")
