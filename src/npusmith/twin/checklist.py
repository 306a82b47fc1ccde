"""What a checker of Ascend C should see, and which codes of errors.CODES see it here.

The ids are our own list of 2026; A: operands, I: contents of memory, Q: queues, S: order, R: state
that outlives a call, H: host and kernel, P: speed. `open` says what of an item is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the list."""

    name: str
    what: str
    codes: tuple[str, ...]
    open: str = ""


CHECKLIST: tuple[Item, ...] = (
    Item("A01", "operand alignment", ("ub-align", "gm-align")),
    Item("A02", "footprint inside the tensor", ("ub-bounds",)),
    Item("A03", "footprint and buffers inside the memory", ("ub-bounds", "ub-capacity", "ub-top")),
    Item(
        "A04",
        "global memory inside its allocation, red zones around it",
        ("gm-bounds", "gm-size", "gm-readonly", "gm-padding", "gm-overrun", "kernel-crash"),
        "a raw pointer that reads just past a tensor, inside its last page",
    ),
    Item(
        "A05",
        "ranges of repeats, strides and counts; narrowing of arguments",
        ("param-range",),
        "arguments narrowed before the call, in the kernel's own variables",
    ),
    Item("A06", "DataCopy lengths in whole blocks", ("copy-length",)),
    Item("A07", "DataCopyPad's padding", ("copy-pad",)),
    Item("A08", "source and destination overlap", ("overlap",), "overlaps inside library calls"),
    Item("A09", "position, kind of core, chip", ("position", "wrong-core", "chip-lacks")),
    Item("A10", "element types and casts", ("compile-failed", "cast-mode", "atomic-type")),
    Item(
        "A11",
        "scratch tensors and the reserved 8 KB",
        ("scratch-size", "ub-reserved"),
        "true minima of library functions are not published in one place",
    ),
    Item("A12", "lengths of Compare and Select", ("compare-length",)),
    Item("A13", "offsets of Gather", ("gather-offset",)),
    Item("A14", "lists of MrgSort", ("sort-unsorted", "param-range")),
    Item("A15", "strides of a single TransDataTo5HD", ("param-range",)),
    Item("A16", "Nd2Nz pitch and padded rows", ("param-range",), "rows read as if padded"),
    Item(
        "A17",
        "LoadData, Mmad and Fixpipe rules",
        ("param-range", "ub-align", "ub-bounds"),
        "layouts of fractals are not tracked",
    ),
    Item(
        "A18",
        "accesses without an API: wild, to globals, or in number",
        ("wild-pointer", "global-write", "raw-pointer"),
        "locals: a kernel may compute in plain C++ on its own stack",
    ),
    Item(
        "I01",
        "reads of what was never written",
        ("uninit-read", "padding-read"),
        "compare, sort, transpose, cube, activations and norms count as writing data; raw pointers",
    ),
    Item("I02", "padding in a reduction", ("padding-read",), "library reductions"),
    Item("I03", "atomics on memory never written", ("atomic-uninit",)),
    Item("Q01", "queue states", ("queue-state", "queue-leak", "queue-depth")),
    Item("Q02", "number of buffers and pipes", ("queue-buffers", "pipe-twice", "pipe-missing")),
    Item("Q03", "AllocTensor that waits for ever", ("queue-deadlock",)),
    Item(
        "Q04", "queue used for the other direction", ("hazard",), "seen by its missing event only"
    ),
    Item("Q05", "PopStackBuffer nested", ("stack-nested",)),
    Item("S01", "hazards between pipes", ("hazard",), "what raw pointers touch"),
    Item(
        "S02",
        "dependence inside a pipe",
        ("hazard-barrier", "hazard-auto-sync"),
        "of vector instructions only reads of fresh results; Fixpipe",
    ),
    Item(
        "S03",
        "flags without their partner, event ids",
        ("event-pair", "event-none", "param-range"),
        "use of ids 6 and 7, which is legal but discouraged",
    ),
    Item("S04", "scalar access against pipes", ("hazard", "hazard-auto-sync")),
    Item(
        "S05",
        "flags and barriers between cores",
        ("deadlock", "cross-mode", "cross-count", "cross-pair"),
    ),
    Item("S06", "races between cores, shared lines", ("gm-race", "gm-line")),
    Item("S07", "data cache", ("gm-cache",), "dirty lines at the end of a kernel"),
    Item("S08", "barriers of more blocks than cores", ("sync-cores",)),
    Item("R01", "state left at the end", ("sticky-state",), "deq scale and CTRL bits"),
    Item("R02", "mask replaced before use", ("mask-lost",)),
    Item("R03", "index or bits read as a value", (), "not covered"),
    Item("R04", "results that depend on the order of cores", (), "by hand: `run --shuffle SEED`"),
    Item(
        "H01",
        "tiling struct of host and kernel",
        ("tiling-size", "tiling-mismatch", "tiling-array"),
        "fields that the host never writes; offsets that overflow and stay inside their tensor",
    ),
    Item("H02", "workspace", ("gm-bounds", "workspace-size", "mix-workspace")),
    Item("H03", "TCubeTiling", ("cube-tiling", "tiling-shape")),
    Item(
        "H04",
        "file and entry of the kernel as the build makes them out of the OpDef type",
        ("entry-name", "project-no-entry"),
        "which file a chip's configuration names, where several are given",
    ),
    Item("P01", "small copies", ("slow-copy",), "starts that are no multiple of 512 B"),
    Item("P02", "UB bank conflicts", (), "as a number: `npusmith profile`"),
    Item("P03", "scalar loops", ("slow-scalar",)),
    Item("P04", "barriers of all pipes", ("slow-barrier",)),
    Item("P05", "cores that share 512 B", (), "not covered"),
    Item("P06", "no double buffer", (), "as a number: `npusmith profile`"),
    Item("P07", "cores with unequal work", (), "as a number: `npusmith profile`"),
)


def items_of(code: str) -> tuple[str, ...]:
    """The names of the items that a code covers, wholly or in part."""
    return tuple(item.name for item in CHECKLIST if code in item.codes)
