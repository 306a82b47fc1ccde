"""The reader of CMake files: `follow(text, variables)` gives their commands, without CMake.

Nothing is run. Variables and the commands that set them are followed, and where the caller wants
that, conditions. What the commands mean is the caller's matter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

SCOPES = frozenset({"PRIVATE", "PUBLIC", "INTERFACE", "SYSTEM", "BEFORE", "AFTER"})
_MOST_BYTES = 1 << 20
_COMMENT = re.compile(r"#\[(=*)\[.*?\]\1\]|#[^\n]*", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_WORD = re.compile(r'"((?:\\.|[^"\\])*)"|((?:[^\s"]|(?<=\S)"[^"]*")+)', re.DOTALL)
_BRACKET = re.compile(r'"(?:\\.|[^"\\])*"|[()]', re.DOTALL)
_COMMAND = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_GENERATOR = re.compile(r"^\$<(?:\$<[^<>]*>|[^<>:]+):")  # one for a language, a build, ...
_FALSE = ("", "0", "off", "no", "false", "n", "ignore", "notfound")
_TRUE = ("on", "yes", "true", "y")
_BRANCHES = ("if", "elseif", "else", "endif")
_BODIES = ("function", "macro", "foreach", "while")
_ASSIGNS = ("set", "option", "list", "string", "file")
HERE = "CMAKE_CURRENT_SOURCE_DIR"
_MOST_FILES = 200  # that a pattern names; files that one includes


@dataclass(frozen=True, slots=True)
class Command:
    """One call: its name in small letters, its words with variables filled in, its 1-based line.

    `unknown`: it names a variable that nobody has set; that stands for nothing.
    """

    name: str
    words: tuple[str, ...]
    line: int
    unknown: bool


def read_text(file: Path) -> str:
    """The text of a CMake file; nothing of a link, or where there is none."""
    if file.is_symlink() or not file.is_file():
        return ""
    with file.open("rb") as handle:
        return handle.read(_MOST_BYTES).decode("utf-8", "replace")


def follow(text: str, variables: dict[str, str], *, every: bool) -> Iterator[Command]:
    """The commands that do not set variables, in order; `variables` changes with those that do.

    `every`: all branches count, and the bodies of functions and loops; what is set by way of an
    unknown variable stays unset. Otherwise conditions decide, bodies are passed over, and files
    below CMAKE_CURRENT_SOURCE_DIR that are included are followed, each once.
    """
    yield from _Reading(variables, every).follow(text)


def definitions(words: Sequence[str], *, plain: bool, generators: bool) -> list[str]:
    """The macros, NAME or NAME=VALUE, among a command's words.

    `plain`: they stand without -D as well; `generators`: what a generator expression holds counts.
    """
    found = []
    for part in re.split(r"[;\s]+", ";".join(words)):
        bare = _GENERATOR.sub("", part) if generators else part
        if generators and bare.count(">") > bare.count("<"):  # the end of what one holds
            bare = bare.rstrip(">")
        if bare.startswith("-D"):
            found.append(bare[2:])
        elif plain and bare not in SCOPES:
            found.append(bare)
    return [item for item in found if re.match(r"[A-Za-z_]\w*(=|$)", item)]


def _commands(text: str) -> list[tuple[str, str, int]]:
    """Each command with the text between its brackets and its line, in order."""
    bare = _blank_comments(text)
    found = []
    at = 0
    while match := _COMMAND.search(bare, at):
        at = _closing(bare, match.end())
        line = bare.count("\n", 0, match.start()) + 1
        found.append((match.group(1), bare[match.end() : at], line))
    return found


def _blank_comments(text: str) -> str:
    strings = [(match.start(), match.end()) for match in _STRING.finditer(text)]

    def blank(match: re.Match[str]) -> str:
        held = any(start < match.start() < end for start, end in strings)
        if held and "\n" not in match.group():
            return match.group()
        return " " + "\n" * match.group().count("\n")

    return _COMMENT.sub(blank, text)


def _closing(text: str, at: int) -> int:
    """Where the bracket that was opened before `at` is closed; the end where it is not."""
    depth = 1
    for match in _BRACKET.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        if depth == 0:
            return match.start()
    return len(text)


@dataclass(slots=True)
class _Reading:
    """The state of one file while its commands are followed."""

    variables: dict[str, str]
    every: bool
    open: list[list[bool]] = field(default_factory=list)  # of each if: is it on, was one taken
    hidden: int = 0  # functions, macros and loops around, whose bodies are not followed
    included: set[Path] = field(default_factory=set)

    def follow(self, text: str) -> Iterator[Command]:
        for name, body, line in _commands(text):
            yield from self.take(name.lower(), body, line)

    def take(self, name: str, text: str, line: int) -> Iterator[Command]:
        """Follow one command; gives it where it is on and sets nothing."""
        if name in _BODIES:
            self.hidden += 1
        elif name.removeprefix("end") in _BODIES:
            self.hidden -= 1
        elif self.hidden > 0 and not self.every:
            return
        elif name in _BRANCHES:
            self._branch(name, text)
        elif self.every or all(on for on, _ in self.open):
            words, unknown = self._words(text)
            if name == "include" and not self.every:
                yield from self._include(words)
            elif name not in _ASSIGNS:
                yield Command(name, tuple(words), line, unknown)
            elif words and not (unknown and self.every):
                self._assign(name, words)

    def _include(self, words: list[str]) -> Iterator[Command]:
        """The commands of a file below the folder; one that includes itself is read once."""
        here = self._here()
        if here is None or not words or len(self.included) >= _MOST_FILES:
            return
        file = (here / words[0]).resolve()
        if file.is_relative_to(here) and file not in self.included:
            self.included.add(file)
            yield from self.follow(read_text(file))

    def _here(self) -> Path | None:
        folder = self.variables.get(HERE)
        return Path(folder).resolve() if folder else None

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
        return _Condition([self._filled(item)[0] for item in tokens], self.variables).value()

    def _words(self, text: str) -> tuple[list[str], bool]:
        found: list[str] = []
        lacking = False
        for quoted, bare in _WORD.findall(text):
            filled, unknown = self._filled(bare or quoted)
            lacking = lacking or unknown
            if bare:
                found += [word for word in filled.split(";") if word]
            else:
                found.append(filled.replace('\\"', '"'))
        return found, lacking

    def _filled(self, word: str) -> tuple[str, bool]:
        unknown = False
        for _ in range(8):  # a variable's value may name others
            names = _VARIABLE.findall(word)
            if not names:
                break
            unknown = unknown or any(name not in self.variables for name in names)
            word = _VARIABLE.sub(lambda found: self.variables.get(found[1], ""), word)
        return word, unknown

    def _assign(self, name: str, words: list[str]) -> None:
        if name == "option":
            self.variables.setdefault(words[0], words[2] if len(words) > 2 else "OFF")
        elif name == "set" and "CACHE" in words:
            self.variables.setdefault(words[0], ";".join(words[1 : words.index("CACHE")]))
        elif name == "set":
            kept = [word for word in words[1:] if word != "PARENT_SCOPE"]
            self.variables[words[0]] = ";".join(kept)
        elif name == "list" and words[0] == "APPEND" and len(words) > 1:
            old = self.variables.get(words[1], "")
            self.variables[words[1]] = ";".join(filter(None, [old, *words[2:]]))
        elif name == "string" and len(words) > 2:
            self._string(words)
        elif name == "file" and words[0] in ("GLOB", "GLOB_RECURSE") and len(words) > 2:
            self.variables[words[1]] = ";".join(self._glob(words[2:]))

    def _glob(self, patterns: list[str]) -> list[str]:
        """The files below the folder that patterns name, sorted."""
        here = self._here()
        if here is None:
            return []
        found: list[str] = []
        for pattern in patterns:
            path = Path(os.path.normpath(here / pattern))
            if path.is_relative_to(here) and path != here:
                files = islice(here.glob(str(path.relative_to(here))), _MOST_FILES)
                found += sorted(str(file) for file in files if file.is_file())
        return found

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
            return self._true(left)
        self.at += 1
        return self._compare(word, self._text(left), self._text(self._take()))

    def _true(self, token: str) -> bool:
        """A constant, or a variable that is set to something else than a false constant."""
        value = token.strip('"').lower()
        if value in _TRUE or value in _FALSE or re.fullmatch(r"-?\d+", value):
            return value not in _FALSE
        return self.variables.get(token, "").lower() not in _FALSE

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
