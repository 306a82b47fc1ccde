"""What a CMakeLists.txt says of one source: macros, include folders, what it is linked with.

It is read without CMake. Variables, conditions on them and the commands that add definitions,
include folders or sources are followed; all else is passed over, and nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_FILE = "CMakeLists.txt"
_MOST_BYTES = 1 << 20
_COMMENT = re.compile(r"#\[(=*)\[.*?\]\1\]|#[^\n]*", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_WORD = re.compile(r'"((?:\\.|[^"\\])*)"|((?:[^\s"]|(?<=\S)"[^"]*")+)', re.DOTALL)
_COMMAND = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_GENERATOR = re.compile(r"^\$<(?:\$<[^<>]*>|[^<>:]+):")  # one for a language, a build, ...
_FALSE = ("", "0", "off", "no", "false", "n", "ignore", "notfound")
_SCOPES = ("PRIVATE", "PUBLIC", "INTERFACE", "BEFORE", "AFTER", "SYSTEM")
_TARGETS = ("add_executable", "add_library")
_SOURCES = (".cpp", ".cc", ".asc")


@dataclass(frozen=True, slots=True)
class Flags:
    """Macros in the form NAME or NAME=VALUE, folders for #include, the target's other sources."""

    definitions: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    sources: tuple[Path, ...] = ()


def read_flags(source: Path, variables: Mapping[str, str]) -> Flags:
    """How the CMakeLists.txt beside a source compiles it, with the variables of `cmake -D`.

    Definitions of targets count where the target has the source, or names no source of its own.
    """
    source = source.resolve()
    file = source.parent / _FILE
    if file.is_symlink() or not file.is_file():
        return Flags()
    with file.open("rb") as handle:
        text = handle.read(_MOST_BYTES).decode(errors="replace")
    reading = _Reading(source, dict(variables))
    for name, words in _commands(text):
        reading.take(name.lower(), words)
    return reading.flags()


def _commands(text: str) -> list[tuple[str, str]]:
    """Each command with the text between its brackets, in order."""
    strings = {match.start(): match.end() for match in _STRING.finditer(text)}
    bare = _blank_comments(text, strings)
    found = []
    at = 0
    while match := _COMMAND.search(bare, at):
        at = _closing(bare, match.end())
        found.append((match.group(1), bare[match.end() : at]))
    return found


def _blank_comments(text: str, strings: Mapping[int, int]) -> str:
    inside = [(start, end) for start, end in strings.items()]

    def blank(match: re.Match[str]) -> str:
        held = any(start < match.start() < end for start, end in inside)
        return match.group() if held and "\n" not in match.group() else " "

    return _COMMENT.sub(blank, text)


def _closing(text: str, at: int) -> int:
    """Where the bracket that was opened before `at` is closed; the end where it is not."""
    depth = 1
    for match in re.compile(r'"(?:\\.|[^"\\])*"|[()]', re.DOTALL).finditer(text, at):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        if depth == 0:
            return match.start()
    return len(text)


@dataclass(slots=True)
class _Reading:
    """The state of one file while its commands are followed."""

    source: Path
    variables: dict[str, str]
    open: list[list[bool]] = field(default_factory=list)  # of each if: is it on, was one taken
    hidden: int = 0  # functions, macros and loops around, whose bodies are not followed
    everywhere: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    by_target: dict[str, list[str]] = field(default_factory=dict)
    includes_of: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        here = str(self.source.parent)
        for name in ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR",
                     "CMAKE_CURRENT_LIST_DIR"):  # fmt: skip
            self.variables.setdefault(name, here)
        self.variables.setdefault("CMAKE_ASC_ARCHITECTURES", "dav-2201")
        self.variables.setdefault("CMAKE_ASC_RUN_MODE", "npu")

    def take(self, name: str, text: str) -> None:
        """Follow one command."""
        if name in ("function", "macro", "foreach", "while"):
            self.hidden += 1
        elif name in ("endfunction", "endmacro", "endforeach", "endwhile"):
            self.hidden -= 1
        elif self.hidden > 0:
            return
        elif name in ("if", "elseif", "else", "endif"):
            self._branch(name, text)
        elif all(on for on, _ in self.open):
            self._do(name, self._words(text))

    def _branch(self, name: str, text: str) -> None:
        outer = all(on for on, _ in self.open[: -1 if name != "if" else None])
        if name == "if":
            on = outer and self._holds(text)
            self.open.append([on, on])
        elif self.open and name == "endif":
            self.open.pop()
        elif self.open:
            _, taken = self.open[-1]
            on = outer and not taken and (name == "else" or self._holds(text))
            self.open[-1] = [on, taken or on]

    def _holds(self, text: str) -> bool:
        tokens = re.findall(r'"(?:\\.|[^"\\])*"|[()]|[^\s()"]+', text)
        return _Condition([self._filled(item) for item in tokens], self.variables).value()

    def _words(self, text: str) -> list[str]:
        found = []
        for quoted, bare in _WORD.findall(text):
            if bare:
                found += [word for word in self._filled(bare).split(";") if word]
            else:
                found.append(self._filled(quoted).replace('\\"', '"'))
        return found

    def _filled(self, word: str) -> str:
        for _ in range(8):  # a variable's value may name others
            word, count = _VARIABLE.subn(lambda found: self.variables.get(found[1], ""), word)
            if not count:
                break
        return word

    def _do(self, name: str, words: list[str]) -> None:
        if not words:
            return
        if name in ("set", "option"):
            self._set(name, words)
        elif name == "list" and words[0] == "APPEND" and len(words) > 1:
            old = self.variables.get(words[1], "")
            self.variables[words[1]] = ";".join(filter(None, [old, *words[2:]]))
        elif name == "string" and len(words) > 2:
            self._string(words)
        elif name in _TARGETS:
            self.sources[words[0]] = words[1:]
        elif name == "target_sources":
            self.sources.setdefault(words[0], []).extend(words[1:])
        elif name == "target_link_libraries":
            self.links.setdefault(words[0], []).extend(words[1:])
        elif name in ("add_definitions", "add_compile_definitions", "add_compile_options"):
            self.everywhere += _defined(words, name.endswith("compile_definitions"))
        elif name == "include_directories":
            self.includes += words
        elif name in ("target_compile_definitions", "target_compile_options"):
            found = _defined(words[1:], name.endswith("definitions"))
            self.by_target.setdefault(words[0], []).extend(found)
        elif name == "target_include_directories":
            self.includes_of.setdefault(words[0], []).extend(words[1:])

    def _set(self, name: str, words: list[str]) -> None:
        if name == "option":
            self.variables.setdefault(words[0], words[2] if len(words) > 2 else "OFF")
        elif "CACHE" in words:
            self.variables.setdefault(words[0], ";".join(words[1 : words.index("CACHE")]))
        else:
            kept = [word for word in words[1:] if word != "PARENT_SCOPE"]
            self.variables[words[0]] = ";".join(kept)

    def _string(self, words: list[str]) -> None:
        """string(REGEX MATCH pattern NAME text...) and string(TOUPPER or TOLOWER text NAME)."""
        if words[0] in ("TOUPPER", "TOLOWER"):
            self.variables[words[2]] = (
                words[1].upper() if words[0] == "TOUPPER" else words[1].lower()
            )
        elif words[:2] == ["REGEX", "MATCH"] and len(words) > 4:
            try:
                found = re.search(words[2], "".join(words[4:]))
            except re.error:
                found = None
            self.variables[words[3]] = found.group() if found else ""

    def flags(self) -> Flags:
        """What counts for the source."""
        definitions, includes = list(self.everywhere), list(self.includes)
        for target in {**self.by_target, **self.includes_of, **self.sources}:
            if self._has_source(target):
                definitions += self.by_target.get(target, [])
                includes += self.includes_of.get(target, [])
        folders = (self.source.parent / item for item in includes if item not in _SCOPES)
        near = dict.fromkeys(path.resolve() for path in folders if path.is_dir())
        return Flags(tuple(dict.fromkeys(definitions)), tuple(near), tuple(self._linked()))

    def _linked(self) -> dict[Path, None]:
        """The other sources of the target that names the source, and of libraries in this file."""
        left = [name for name, held in self.sources.items() if self._names(held)]
        seen: dict[str, None] = {}
        while left:
            target = left.pop()
            if target not in seen:
                seen[target] = None
                left += [item for item in self.links.get(target, ()) if item in self.sources]
        files = (self.source.parent / item for target in seen for item in self.sources[target])
        kept = (file.resolve() for file in files if file.suffix in _SOURCES and file.is_file())
        return dict.fromkeys(file for file in kept if file != self.source)

    def _names(self, held: Sequence[str]) -> bool:
        return any((self.source.parent / item).resolve() == self.source for item in held)

    def _has_source(self, target: str) -> bool:
        own = [Path(item).name for item in self.sources.get(target, ())]
        return self.source.name in own or not any(Path(item).suffix for item in own)


def _defined(words: Sequence[str], plain: bool) -> list[str]:
    """The macros among the arguments of a command; `plain`: they stand without -D as well."""
    found = []
    for part in re.split(r"[;\s]+", ";".join(words)):
        bare = _GENERATOR.sub("", part)
        if bare.count(">") > bare.count("<"):  # the end of what a generator expression holds
            bare = bare.rstrip(">")
        if bare.startswith("-D"):
            found.append(bare[2:])
        elif plain and bare not in _SCOPES:
            found.append(bare)
    return [item for item in found if re.match(r"[A-Za-z_]\w*(=|$)", item)]


@dataclass(slots=True)
class _Condition:
    """The tokens of an if(), read from the left; what is not known does not hold."""

    tokens: list[str]
    variables: Mapping[str, str]
    at: int = 0

    def value(self) -> bool:
        result = self._both()
        while self._next("OR"):
            other = self._both()
            result = result or other
        return result

    def _both(self) -> bool:
        result = self._one()
        while self._next("AND"):
            other = self._one()
            result = result and other
        return result

    def _next(self, word: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == word:
            self.at += 1
            return True
        return False

    def _take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def _one(self) -> bool:
        if self._next("NOT"):
            return not self._one()
        if self._next("("):
            result = self.value()
            self._next(")")
            return result
        if self._next("DEFINED"):
            return self._take() in self.variables
        left = self._take()
        word = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if word in ("", "AND", "OR", ")"):
            return self._text(left).lower() not in _FALSE
        self.at += 1
        return self._compare(word, self._text(left), self._text(self._take()))

    def _text(self, token: str) -> str:
        if token.startswith('"'):
            return token[1:-1]
        return self.variables.get(token, token)

    def _compare(self, word: str, left: str, right: str) -> bool:
        if word == "MATCHES":
            try:
                return re.search(right, left) is not None
            except re.error:
                return False
        if word == "IN_LIST":
            return left in right.split(";")
        if word in ("STREQUAL", "VERSION_EQUAL"):
            return left == right
        if word in ("EQUAL", "LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL"):
            return _ordered(word, left, right)
        return False


def _ordered(word: str, left: str, right: str) -> bool:
    try:
        a, b = int(left), int(right)
    except ValueError:
        return False
    return {
        "EQUAL": a == b, "LESS": a < b, "GREATER": a > b,
        "LESS_EQUAL": a <= b, "GREATER_EQUAL": a >= b,
    }[word]  # fmt: skip
