"""`npusmith checks`: what the twin looks for, out of errors.CODES and twin.checklist."""

from __future__ import annotations

from npusmith.cli.exits import Exit
from npusmith.cli.markdown import prose
from npusmith.cli.markdown import row as table_row
from npusmith.cli.reply import Reply
from npusmith.cli.screen import Screen
from npusmith.errors import CODES, Code
from npusmith.twin.checklist import CHECKLIST, items_of


def checked() -> list[Code]:
    """The codes that some item of the checklist names, in the order of the table."""
    named = {code for item in CHECKLIST for code in item.codes}
    return [row for row in CODES.values() if row.name in named]


def list_checks() -> Reply:
    """Every check as data and as text."""
    rows = [
        {
            "code": row.name,
            "level": row.level.value,
            "meaning": row.meaning,
            "legal": row.legal,
            "hint": row.hint,
            "checklist": list(items_of(row.name)),
        }
        for row in checked()
    ]
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
