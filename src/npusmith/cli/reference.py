"""docs/reference.md: every operation of the tile language, out of the intrinsic table."""

from __future__ import annotations

from npusmith.cli.markdown import prose
from npusmith.cli.markdown import row as table_row
from npusmith.ir.dtypes import DType
from npusmith.lang.words import CALLS, CHIP_FACTS, SCALAR_ARGS, signature
from npusmith.target.intrinsics import CASTS, INTRINSICS, Form, Intrinsic

_TITLES = {
    Form.MAP: "Element by element",
    Form.LANES: "Reduction along the last axis",
    Form.ROWS: "Reduction down a middle axis",
}
_SHORT = {DType.FLOAT32: "f32", DType.FLOAT16: "f16", DType.BFLOAT16: "bf16"}


def reference_page(stamp: str) -> str:
    """The page; `stamp` says that it is generated."""
    lines = [
        "# Quick reference of the tile language\n",
        stamp,
        "Rules and an example: [language](language.md). `n` counts elements; `a`, `b` are buffers, "
        "`s` is a scalar, `tmp` a scratch buffer. The dtypes are those of `dst`; sources have the "
        "same unless the row says otherwise. The last column says how sure the meaning is.\n",
        "## Copies and cores\n",
        *(f"- `{text}`" for text in dict.fromkeys(CALLS.values())),
        "\n## Scalar expressions\n",
        "Operators of Python on 64-bit ints and float32: `+ - * / // % < <= > >= == != and or`, "
        "`x if c else y`, and\n",
        *(f"- `{fn.value}` of {count}" for fn, count in SCALAR_ARGS.items()),
        "- `core_id()`, `core_count()`, `value(buf[i])` in the kernel",
        f"- `x.shape[i]`, `x.size`, {_facts()} in the host function",
    ]
    for form, title in _TITLES.items():
        rows = [row for row in INTRINSICS.values() if row.form is form]
        lines += [f"\n## {title}\n", *_table(rows)]
    lines += ["\n## Casts\n", "| from | to | modes |", "|---|---|---|"]
    lines += [
        table_row(_name(source), _name(target), ", ".join(modes))
        for (source, target), modes in CASTS.items()
    ]
    return "\n".join(lines) + "\n"


def _facts() -> str:
    return ", ".join(f"`chip.{name}`" for name in CHIP_FACTS)


def _table(rows: list[Intrinsic]) -> list[str]:
    head = ["| operation | meaning | dtypes | Ascend C | evidence |", "|---|---|---|---|---|"]
    return [*head, *(_row(row) for row in rows)]


def _row(row: Intrinsic) -> str:
    dtypes = _names(row.dtypes)
    if row.src_dtypes:
        dtypes += f"; sources {_names(row.src_dtypes)}"
    modes = f"; modes {', '.join(row.modes)}" if row.modes else ""
    meaning = prose(row.summary + modes)
    return table_row(f"`{signature(row)}`", meaning, dtypes, row.ascend, row.evidence.value)


def _names(dtypes: tuple[DType, ...]) -> str:
    return ", ".join(_name(dtype) for dtype in dtypes)


def _name(dtype: DType) -> str:
    return _SHORT.get(dtype, dtype.value)
