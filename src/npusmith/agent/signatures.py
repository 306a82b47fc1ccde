"""How Ascend C functions are declared: read from the twin's own headers, as the compiler sees them.

`open_signatures(chip).lines(names)` gives, for each name, its row of the API table and its
overloads. What is shown is what compiles on the twin; the element types are those of the table.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from npusmith.sandbox.folder import temporary_folder
from npusmith.target.apis import ALL, Api
from npusmith.target.chips import Chip
from npusmith.twin import scan
from npusmith.twin.toolchain import INCLUDE, find_toolchain

# What nearly every kernel needs, before anything is known of it.
BASIC = (
    "GlobalTensor::SetGlobalBuffer", "TPipe::InitBuffer", "TQue::AllocTensor", "TQue::EnQue",
    "TQue::DeQue", "TQue::FreeTensor", "TBuf::Get", "DataCopy", "DataCopyPad", "Duplicate",
    "GetBlockIdx", "GetBlockNum", "Cast",
)  # fmt: skip
# What a product of matrices is made of, from global memory to L1, L0 and back. A word behind a name
# is of the overloads in question.
_CUBE = (
    "DataCopy Nd2NzParams", "LoadData LoadData2DParams", "Mmad", "Fixpipe FixpipeParamsV220",
    "CrossCoreSetFlag", "CrossCoreWaitFlag",
)  # fmt: skip
# ATen names whose Ascend C names do not hold them.
_WORDS = {
    "amax": ("ReduceMax", "WholeReduceMax", "Max"), "amin": ("ReduceMin", "Min"),
    "sum": ("ReduceSum", "WholeReduceSum"), "mean": ("ReduceSum", "Muls"),
    "clamp": ("Maxs", "Mins"), "where": ("Select", "Compare"), "neg": ("Muls",),
    "sigmoid": ("Sigmoid",), "log": ("Ln",), "pow": ("Power",), "rsub": ("Muls", "Adds"),
    "gt": ("CompareScalar",), "lt": ("CompareScalar",), "max": ("ReduceMax", "Max"),
    "mm": _CUBE, "bmm": _CUBE, "addmm": _CUBE, "baddbmm": _CUBE, "convolution": _CUBE,
    "layer": ("LayerNorm",), "softmax": ("SoftMax",), "gelu": ("Gelu",), "silu": ("Silu",),
}  # fmt: skip
_CALLED = re.compile(r"\b([A-Z]\w+)\s*[<(]")
_MOST_FORMS = 4  # overloads of one name
_MOST_CHARS = 9000  # of all lines
_BAD_BEFORE = {"return", "new", "else", "case", "throw", "using", "typename"}
_HIDDEN = ("twin::If", "twin::LastSite")


class Signatures:
    """The expanded text of the headers, and the table of names."""

    def __init__(self, text: str, rows: Sequence[Api] = ALL) -> None:
        self._text = text
        self._rows = {name: row for row in rows for name in (row.name, *row.aka)}
        self._short = {name.rpartition("::")[2]: row for name, row in reversed(self._rows.items())}

    def lines(self, names: Iterable[str], most: int = _MOST_CHARS) -> list[str]:
        """What is known of each name, as far as there is room."""
        found: list[str] = []
        told: set[str] = set()  # structs
        room = most
        for name in dict.fromkeys(names):
            text = self._about(name)
            structs = sorted(set(re.findall(r"\b\w+Params(?:V220)?\b", text)) - told)
            text = "\n".join(
                [text, *(f"    {row}" for item in structs for row in _fields(self._text, item))]
            )
            if text.strip() and len(text) <= room:
                found.append(text)
                told.update(structs)
                room -= len(text)
        return found

    def known(self, name: str) -> bool:
        name = name.partition(" ")[0]
        return name in self._rows or name in self._short

    def used_in(self, code: str) -> list[str]:
        """Names of the table that the text calls, in their order."""
        return [
            name for name in dict.fromkeys(_CALLED.findall(scan.blank(code))) if self.known(name)
        ]

    def for_ops(self, ops: Iterable[str]) -> list[str]:
        """Names that a graph's operations are likely to need."""
        found: list[str] = []
        for op in ops:
            for word in [part for part in op.split("_") if len(part) > 1]:
                same = [name for name in self._rows if name.lower() in (word, f"{word}s")]
                found += [*_WORDS.get(word, ()), *same]
        return list(dict.fromkeys(found))

    def _about(self, name: str) -> str:
        name, _, word = name.partition(" ")
        row = self._rows.get(name) or self._short.get(name)
        if row is None:
            return ""
        types = f" types: {', '.join(row.dtypes)};" if row.dtypes else ""
        note = f" {row.note};" if row.note else ""
        head = f"{row.name}:{types}{note} {row.known.value}"
        return "\n".join([head, *(f"    {form}" for form in self.forms(row.name, word))])

    def forms(self, name: str, word: str = "") -> list[str]:
        """The overloads of a function or method that name the word, or the fields of a struct."""
        short = name.rpartition("::")[2]
        found = [form for form in dict.fromkeys(_declared(self._text, short)) if word in form]
        plain = [form for form in found if not any(hidden in form for hidden in _HIDDEN)]
        return [_tidy(form) for form in plain][:_MOST_FORMS] or _fields(self._text, short)


def open_signatures(chip: Chip) -> Signatures:
    """Runs the preprocessor over the headers: some tens of milliseconds."""
    chain = find_toolchain(chip)
    with temporary_folder("npusmith-api-") as name:
        source = Path(name, "all.cpp")
        source.write_text('#include <math.h>\n#include "kernel_operator.h"\n', encoding="utf-8")
        done = subprocess.run(
            [chain.compiler.path, "-E", "-P", "-std=c++17", f"-I{chain.folder}", f"-I{INCLUDE}",
             str(source)], capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    start = done.stdout.find("namespace AscendC {")
    return Signatures(done.stdout[max(start, 0) :])


def _declared(text: str, name: str) -> Iterable[str]:
    """Declarations of functions of that name, one line each, without their bodies."""
    for match in re.finditer(rf"(?<![\w:.>~]){re.escape(name)}\s*\(", text):
        before = text[max(0, match.start() - 300) : match.start()]
        kind = re.search(r"(?:^|[;{}>])\s*([\w:<>,&* ]+?)\s*$", before)
        if kind is None or not re.search(r"\w", kind.group(1)):
            continue
        if kind.group(1).split()[-1] in _BAD_BEFORE:
            continue
        end = scan.closing(text, match.end() - 1, 4000)
        if end < 0 or not re.match(
            r"\s*(const\b\s*)?(noexcept\b\s*)?[{;]", text[end + 1 : end + 40]
        ):
            continue
        head = re.search(r"template\s*<[^;{}]*>\s*[\w:<>,&* ]*$", before)
        start = head.group().strip() if head else kind.group(1).strip()
        yield " ".join(f"{start} {name}{text[match.end() - 1 : end + 1]}".split())


def _tidy(form: str) -> str:
    """As a user writes it: without what the twin adds for itself."""
    form = re.sub(r",?\s*twin::Site(\s+\w+)?(\s*=\s*twin::Here\(\))?", "", form)
    form = re.sub(r"\btwin::Byte\b", "uint8_t", form)
    form = re.sub(r"\btwin::Word\b", "uint16_t", form)
    form = re.sub(r"\b(static |inline |constexpr )", "", form.replace("std::", ""))
    return re.sub(r"\(\s*,\s*", "(", form)


def _fields(text: str, name: str) -> list[str]:
    """The members of a struct without its functions; of a union its first name alone."""
    found = re.search(rf"\bstruct {re.escape(name)}\s*\{{", text)
    end = scan.closing(text, found.end() - 1, 4000) if found else -1
    if not found or end < 0:
        return []
    body = re.sub(r"\bunion\s*\{([^;{}]*;)[^{}]*\}\s*;", r"\1", text[found.end() : end])
    rows = [re.sub(r"\(0\)$", "{}", " ".join(row.split())) for row in body.split(";")]
    members = "; ".join(row for row in rows if row.strip("{} ") and "(" not in row)
    return [_tidy(f"struct {name} {{ {members} }}")]
