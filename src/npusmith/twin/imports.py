"""What a kernel's library may ask of the process that it runs in: `refused(library) -> names`.

The runtime's API, arithmetic of the C library and what the compiler itself adds; nothing that
allocates, opens, writes, ends the process or runs before the launch. Read from the ELF file itself:
whatever the text did to hide a call, the linker had to write its name down.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from npusmith.twin.toolchain import INCLUDE

_SYMTAB, _DYNSYM, _RELA, _INIT, _PREINIT = 2, 11, 4, 14, 16
_IRELATIVE = {62: 37, 183: 1032}  # relocations that call a function, by machine
_OBJECT, _TLS, _IFUNC = 1, 6, 10  # kinds of symbols
_WRITABLE = (".data", ".bss", ".tdata", ".tbss", ".ldata", ".lbss")
_START = ("__dso_handle", "__TMC_END__", "completed.", "DW.ref.")  # the compiler's own
_COUNTERS = 256  # bytes of a variable in global memory that barriers count in
_ONE = 8  # bytes: the entry of the compiler's own start code


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions of the C library that compute from their arguments alone.
_MATH = re.compile(
    r"(?:a?(?:sin|cos|tan)h?|sincos|atan2|exp|exp2|exp10|expm1|log|log2|log10|log1p|logb|ilogb|pow"
    r"|sqrt|cbrt|hypot|fabs|fmod|remainder|fma|fmax|fmin|fdim|floor|ceil|round|trunc|rint|nearbyint"
    r"|l?lround|l?lrint|ldexp|scalbl?n|copysign|nextafter|nan|erfc?|[tl]gamma|frexp|modf"
    r"|isnan|isinf|finite|__(?:isnan|isinf|finite|signbit|fpclassify))[fl]?"
)
_PLAIN = _words(
    """
    abs labs llabs div ldiv lldiv __cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable
    _ITM_registerTMCloneTable __gxx_personality_v0 _Unwind_Resume __stack_chk_fail
    __cxa_guard_acquire __cxa_guard_release __cxa_begin_catch __cxa_end_catch
    __cxa_call_unexpected _ZSt9terminatev __asan_handle_no_return __sanitizer_cov_trace_pc
    __x86_return_thunk __wrap_memcpy __wrap_memmove __wrap_memset __wrap_memcmp __wrap_snprintf
    """
)
_COMPILERS = re.compile(
    r"__asan_(?:load|store)(?:1|2|4|8|16|N)_noabort|__x86_indirect_thunk_\w+"
    r"|__(?:u?div|u?mod|mul|fix|float|extend|trunc|pow|add|sub|neg|cmp|eq|ne|lt|le|gt|ge)\w{0,12}[st]f\w?\d?"
    r"|__(?:u?div|u?mod|u?divmod)ti\d"
    r"|_ZT[ISV]N?\w*|_ZTVN10__cxxabiv\w+"  # of classes with a constructor table
)
_FENCES = re.compile(
    r"__(?:asan|sanitizer|x86|wrap)_\w+|twin_enter\w*|memcpy|memmove|memset|memcmp"
)
_TWIN = re.compile(r"_ZNK?4twin(\d+)(\w+)")
# Declared for who starts a launch, not for the kernel.
_NOT_API = ("launch.h", "direct.h")


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int
    name: str


def refused(library: Path, shared: Collection[str] = ()) -> tuple[str, ...]:
    """The names that a kernel may not use, sorted; what runs by itself is named in brackets.

    `shared`: names of variables in global memory, which a kernel may have: counters, and no more.
    """
    data = library.read_bytes()
    machine, sections = _sections(data)
    asked = {name for name, defined in _symbols(data, sections, _DYNSYM) if not defined}
    given = {name for name, defined in _symbols(data, sections, _SYMTAB) if defined}
    wrong = {name for name in asked if not _allowed(name)}
    wrong |= {name for name in given if _FENCES.fullmatch(name)}  # answers to its own checks
    held = {
        f"(a variable, {name})"
        for name, size in _variables(data, sections)
        if size > _COUNTERS or not any(_is_called(name, item) for item in shared)
    }
    return tuple(sorted({*wrong, *held, *_runs_early(data, machine, sections)}))


def _allowed(name: str) -> bool:
    if name in _PLAIN or _MATH.fullmatch(name) or _COMPILERS.fullmatch(name):
        return True
    if name.startswith(("_ZN4twin4host", "_ZNK4twin4host")):
        return False
    found = _TWIN.match(name)
    return found is not None and found.group(2)[: int(found.group(1))] in _api()


@functools.cache
def _api() -> frozenset[str]:
    """Names of functions and classes in the headers that kernels include."""
    texts = (
        path.read_text()
        for path in sorted((INCLUDE / "twin").glob("*.h"))
        if path.name not in _NOT_API
    )
    return frozenset(name for text in texts for name in re.findall(r"\b[A-Z]\w+\b", text))


def _sections(data: bytes) -> tuple[int, list[_Section]]:
    """Of a 64-bit little-endian ELF file: what machine it is for, and its sections."""
    if data[:6] != b"\x7fELF\x02\x01":
        return 0, []
    (machine,) = struct.unpack_from("<H", data, 18)
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, at + number * size) for number in range(count)]
    (names,) = struct.unpack_from("<H", data, 62)
    home = rows[names][4] if names < len(rows) else 0
    return machine, [
        _Section(row[1], row[4], row[5], row[6], _text(data, home + row[0])) for row in rows
    ]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")


def _symbols(data: bytes, sections: list[_Section], kind: int) -> Iterator[tuple[str, bool]]:
    """The names that other libraries see or give, and whether this one defines them."""
    for table in (section for section in sections if section.kind == kind):
        names = sections[table.link].offset
        for at in range(table.offset + 24, table.offset + table.size, 24):
            name, info, _, home = struct.unpack_from("<IBBH", data, at)
            yield _text(data, names + name), home != 0 and info & 15 != _IFUNC


def _is_called(symbol: str, name: str) -> bool:
    """Whether that is the symbol of a variable of this name, outside of functions and classes."""
    return symbol == name or re.fullmatch(rf"_ZL?{len(name)}{name}", symbol) is not None


def _variables(data: bytes, sections: list[_Section]) -> Iterator[tuple[str, int]]:
    """What a core could leave for another one, or keep from the fence; with its bytes."""
    for table in (section for section in sections if section.kind == _SYMTAB):
        names = sections[table.link].offset
        for at in range(table.offset + 24, table.offset + table.size, 24):
            name, info, _, home, _, size = struct.unpack_from("<IBBHQQ", data, at)
            held = info & 15 in (_OBJECT, _TLS) and 0 < home < len(sections)
            text = _text(data, names + name)
            section = sections[home].name if held else ""
            changes = section.startswith(_WRITABLE) and not section.startswith(".data.rel.ro")
            if changes and not text.startswith(_START):
                yield text, size


def _runs_early(data: bytes, machine: int, sections: list[_Section]) -> Iterator[str]:
    """What runs when the library is loaded, before any launch."""
    for section in sections:
        longer = section.kind == _INIT and section.size > _ONE
        if longer or section.kind == _PREINIT:
            yield "(a constructor of a global object)"
        if section.kind == _RELA:
            for at in range(section.offset, section.offset + section.size, 24):
                (info,) = struct.unpack_from("<Q", data, at + 8)
                if info & 0xFFFFFFFF == _IRELATIVE.get(machine, -1):
                    yield "(a function that is chosen while loading)"
