"""What the text of a kernel may not say: `check(texts)`, `check_preprocessed(file, root)`.

A kernel is plain C++ with the documented API. Attributes, builtins, assembly and pragmas of the
host compiler step around the fence (runtime/fence); macros of compiler, machine and twin tell
the twin from the chip. The second look is at the preprocessor's output, where nothing is pasted
together any more; there every included file counts that is not ours or the system's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.twin import scan
from npusmith.twin.toolchain import INCLUDE


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ATTRIBUTES = _words(
    """
    aligned always_inline cold const deprecated fallthrough flatten hot likely maybe_unused
    may_alias noinline noreturn nodiscard packed pure unlikely unused nothrow nonnull
    warn_unused_result cce_kernel aicore sync_alias aiv_kernel
    """
)
_BUILTINS = _words(
    """
    abs labs llabs expect unreachable assume_aligned constant_p offsetof FILE LINE FUNCTION
    COLUMN popcount popcountl popcountll clz clzl clzll ctz ctzl ctzll ffs ffsl ffsll parity
    bswap16 bswap32 bswap64 memcpy memmove memset memcmp isnan isinf isfinite signbit fabs
    fabsf sqrt sqrtf exp expf log logf pow powf fmax fmaxf fmin fminf floor floorf ceil
    ceilf round roundf trunc truncf fma fmaf copysign copysignf huge_val huge_valf inf inff
    nan nanf add_overflow sub_overflow mul_overflow is_constant_evaluated addressof
    types_compatible_p choose_expr prefetch nearbyint nearbyintf rint rintf
    """
)
_PRAGMAS = re.compile(
    r"\s*(?:unroll|once|nounroll|pack|message|region|endregion|STDC|bisheng|clang\s+loop|GCC\s+unroll"
    r"|(?:GCC|clang)\s+diagnostic)\b"
)
_ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b")
_ATTRIBUTE = re.compile(r"\b__attribute(?:__)?\s*\(\s*\(|\[\s*\[")
_DECLSPEC = re.compile(r"\b(?:__declspec|__extension__\s*&&)\b")
_BUILTIN = re.compile(r"\b__builtin_(\w+)|\b(__sync_\w+|__atomic_\w+|_mm\d*_\w+|__ia32_\w+)\b")
_JUMP = re.compile(
    r"\bgoto\s*\*|&&\s*\w+\s*(?:;|\))(?=[^\n]*\bgoto\b)|\b(?:_?setjmp|sigsetjmp|longjmp)\b"
)
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma\b([^\n]*)|\b_Pragma\s*\(|\b__pragma\s*\(", re.M)
_DIGRAPH = re.compile(r"<:(?!:)|:>|%:")
_BRACKETS = {"<:": "[ ", ":>": " ]", "%:": "# "}
_SPLICE = re.compile(r"\\[ \t]*\n")
_RENUMBER = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(?:line\b|\d)", re.M)
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_OURS = re.compile(
    r"\btwin\s*::|\bnamespace\s+twin\b|\bTWIN_\w+|\btwin_\w+|\bNPUSMITH\w*"
    r"|\b__(?:asan|sanitizer|x86|wrap|real|ubsan|cyg)_\w+"
)
_PLATFORM = re.compile(
    r"\b(?:__x86_64(?:__)?|__amd64(?:__)?|__i[3-6]86(?:__)?|_M_X64|_M_IX86|_M_AMD64|__aarch64__|__arm__"
    r"|__linux(?:__)?|__gnu_linux__|__unix(?:__)?|__GNU[CG]__|__GNUC_\w+__|__GLIBC\w*__|__GLIBCXX__"
    r"|_GLIBCXX\w+|__VERSION__|__OPTIMIZE(?:_SIZE)?__|__NO_INLINE__|__SANITIZE\w+|__SSE\w*__|__AVX\w*__"
    r"|__MMX__|__ELF__|__PIC__|__pic__|__code_model\w+|__REGISTER_PREFIX__|__USER_LABEL_PREFIX__"
    r"|__clang\w*__|__llvm__|__has_(?:include_next|builtin|attribute|cpp_attribute|feature)"
    r"|__BYTE_ORDER__|__STDC_HOSTED__|__INCLUDE_LEVEL__|__BASE_FILE__|__DATE__|__TIME__"
    r"|__TIMESTAMP__|__COUNTER__|__LP64__|_LP64|__GXX_\w+|__EXCEPTIONS|__cpp_\w+|__CHAR_BIT__"
    r"|__SIZEOF_\w+__|__GCC_\w+|__DEPRECATED|__SEG_\w+|__k8(?:__)?|__FLT\w+__|__DBL\w+__|__LDBL\w+__)\b"
)
_ASKED = re.compile(
    r'(?<!\w)(?:defined[ \t]*\(?[ \t]*)?__has_include\b(?:[ \t]*\([ \t]*"([^"\n]*)"[ \t]*\))?'
)
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)$')


def check(texts: Mapping[Path, str], around: Path) -> None:
    """TwinError cheat-platform for what the files themselves say.

    `around`: the folder in which they may ask for files, by names that are relative to their own.
    """
    for file, text in texts.items():
        splices = [match.start() for match in _SPLICE.finditer(text)]
        code = scan.blank(_SPLICE.sub("", text))
        asked = _asked(scan.blank(_SPLICE.sub("", text), strings=False), file, around)
        for at, said in (*_raw(code), *asked):
            gone = sum(1 for number, splice in enumerate(splices) if splice - 2 * number <= at)
            raise _error(said, Place(str(file), code.count("\n", 0, at) + 1 + gone))


def _raw(code: str) -> Iterator[tuple[int, str]]:
    yield from _find(code, _TRIGRAPH, "a trigraph")
    yield from _find(code, _RENUMBER, "a line directive")
    yield from _find(code, _PLATFORM)
    yield from _find(code, _OURS)
    yield from _spoken(code)


def _asked(code: str, file: Path, around: Path) -> Iterator[tuple[int, str]]:
    """`__has_include` of anything but the project's own: it could tell whose headers these are."""
    for match in _ASKED.finditer(code):
        name = match.group(1) or ""
        if match.group().startswith("defined"):
            continue
        own = name.startswith(("./", "../")) and Path(os.path.normpath(file.parent / name))
        if not own or not own.is_relative_to(around) or own.is_relative_to(INCLUDE):
            yield match.start(), f"__has_include of {name or 'a computed name'}"


def check_preprocessed(file: Path, root: Path, ours: tuple[str, ...], copies: str) -> None:
    """TwinError cheat-platform for what is left when macros are expanded; and for renamed files.

    What lies below `root` is the candidate's. `ours`: beginnings of other names that are not.
    `copies`: the folder that stands in front of the names of rewritten files (copies.py).
    """
    text = file.read_text(errors="replace")

    def is_ours(name: str) -> bool:
        own = ("/usr/", "npusmith ", "<", str(INCLUDE), str(file.parent), *ours)
        return name.startswith(own) and not Path(name).is_relative_to(root)

    for name, line, code in _users(text, is_ours, copies):
        for at, said in _spoken(scan.blank(code)):
            raise _error(said, Place(name, line + code.count("\n", 0, at)))


def _spoken(code: str) -> Iterator[tuple[int, str]]:
    """The compiler's own language."""
    code = _DIGRAPH.sub(lambda found: _BRACKETS[found.group()], code)
    yield from _find(code, _ASSEMBLY, "assembly")
    yield from _find(code, _JUMP, "a jump to an address")
    yield from _find(code, _DECLSPEC)
    for match in _BUILTIN.finditer(code):
        if match.group(2) or match.group(1) not in _BUILTINS:
            yield match.start(), match.group()
    for match in _ATTRIBUTE.finditer(code):
        opening = re.search(r"[\[(]", match.group())
        end = scan.closing(code, match.start() + opening.start(), 4096) if opening else -1
        if end < 0 or _is_index(code, match):
            continue
        yield from (
            (match.start(), f"attribute {word}")
            for word in _attribute_names(code[match.end() : end])
            if word not in _ATTRIBUTES
        )
    for match in _PRAGMA.finditer(code):
        if match.group(1) is None or not _PRAGMAS.match(match.group(1)):
            yield match.start(), "a pragma"


def _is_index(code: str, match: re.Match[str]) -> bool:
    """`a[[] { ... }()]` or `a[b[0]]` without blanks: an index, no attribute."""
    return match.group().startswith("[") and bool(re.search(r"[\w)\]]\s*$", code[: match.start()]))


def _attribute_names(text: str) -> list[str]:
    """Names of the attributes in a list, without their arguments, underscores and vendor."""
    flat = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", " ", text)
    words = re.findall(r"(?:\w+\s*::\s*)?\w+", flat)
    return [word.rpartition(":")[2].strip().strip("_") for word in words if "using" not in word]


def _find(code: str, pattern: re.Pattern[str], what: str = "") -> Iterator[tuple[int, str]]:
    return ((match.start(), what or match.group().strip()) for match in pattern.finditer(code))


def _users(
    text: str, is_ours: Callable[[str], bool], copies: str
) -> Iterator[tuple[str, int, str]]:
    """The pieces that stand in the candidate's files: file, first line, text."""
    stack = [""]
    start, lines = 1, list[str]()
    for raw in text.split("\n"):
        marker = _MARKER.match(raw)
        if marker is None:
            lines.append(raw)
            continue
        if lines and not is_ours(stack[-1]):
            yield stack[-1], start, "\n".join(lines)
        name, flags = marker.group(2).removeprefix(copies), marker.group(3).split()
        if "1" in flags:
            stack.append(name)
        elif "2" in flags and len(stack) > 1:
            stack.pop()
        stack[-1] = name if len(stack) == 1 or "2" in flags else stack[-1]
        start, lines = int(marker.group(1)), []
    if lines and not is_ours(stack[-1]):
        yield stack[-1], start, "\n".join(lines)


def _error(said: str, place: Place) -> TwinError:
    return TwinError("cheat-platform", f"a kernel may not use {said}", place)
