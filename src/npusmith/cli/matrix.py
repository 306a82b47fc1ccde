"""docs/apis.md: what the twin has, element type by element type, and how sure we are of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from npusmith.cli.markdown import prose
from npusmith.cli.markdown import row as table_row
from npusmith.target.apis import ALL, FAMILIES, Api, Known

# C++ name to column head, in the order of the columns.
_TYPES = {
    "half": "f16", "bfloat16_t": "bf16", "float": "f32", "int4b_t": "i4", "int8_t": "i8",
    "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32", "uint32_t": "u32",
    "int64_t": "i64", "uint64_t": "u64",
}  # fmt: skip
_MEANING = {
    Known.REPRODUCED: "our rules give the vendor's published special values",
    Known.DOCUMENTED: "its pages say what it does, and the twin does that",
    Known.INFERRED: "from its formula, its name, or its use in published kernels",
    Known.UNKNOWN: "nothing says what the chip does; the twin does something sensible",
}


def apis_page(stamp: str) -> str:
    """The capability matrix out of target.apis."""
    counts = Counter(row.known for row in ALL)
    lines = [
        "# Capability matrix\n",
        stamp,
        f"{len(ALL)} names of Ascend C compile for dav-2201 and run on the twin. `x` marks an "
        "element type that compiles; types not marked do not. A report names the inferred and "
        "unknown ones that a kernel called.\n",
        "| known | names | meaning |",
        "|---|---:|---|",
        *(table_row(known.value, str(counts[known]), prose(_MEANING[known])) for known in Known),
        "",
    ]
    for family, rows in FAMILIES.items():
        lines += [f"## {family}\n", *_table(rows), ""]
    return "\n".join(lines)


def _table(rows: Iterable[Api]) -> list[str]:
    heads = ("API", *_TYPES.values(), "other types", "known", "source", "test", "note")
    return [
        "| " + " | ".join(heads) + " |",
        "|---" * len(heads) + "|",
        *(_line(row) for row in sorted(rows, key=lambda row: row.name)),
    ]


def _line(row: Api) -> str:
    also = ", ".join(f"`{other}`" for other in row.aka)
    name = f"`{row.name}`" + (f" ({also})" if also else "")
    marks = ["x" if cpp in row.dtypes else "" for cpp in _TYPES]
    others = ", ".join(f"`{cpp}`" for cpp in row.dtypes if cpp not in _TYPES)
    file, _, test = row.test.partition("::")
    link = f"[{test or file.rpartition('/')[2]}](../{file})" if file else ""
    return table_row(
        name, *marks, others, row.known.value, prose(row.source), link, prose(row.note)
    )
