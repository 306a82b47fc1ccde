"""Defaults of options out of files: npusmith.toml, or [tool.npusmith] of pyproject.toml.

The file of a project is as untrusted as the rest of it: it may set PROJECT_OPTIONS, and nothing
that names a model, spends money, or says where files are read and written. The user's own file may
set every option.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError, Place

# What the file of a project may set: how much is tried and judged, and for which chip.
PROJECT_OPTIONS = (
    "auto-sync", "categories", "chip", "inputs", "jobs", "levels", "max-input-mb", "memory-mb",
    "no-search", "notes", "search", "seconds", "seed", "shuffle", "strict", "time",
    "tolerance", "trials", "workers",
)  # fmt: skip
FILE = "npusmith.toml"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults by command and parameter, and those that apply to a command line, in words."""

    defaults: Mapping[str, Any]
    applied: tuple[str, ...] = ()


def read_settings(group: Any, args: Sequence[str], folder: Path) -> Settings:
    """What the user's file and the project's say. The project's comes later and wins.

    group: the parser's table of commands. Raises settings-file.
    """
    defaults: dict[str, Any] = {}
    applied: dict[str, str] = {}
    given = {word.partition("=")[0] for word in args}
    commands = {name: _options(command) for name, command in leaves(group)}
    for path, table, legal in _files(folder):
        for name, key, value in _values(path, table, commands):
            if legal and key not in legal:
                raise _error(path, f"{key} is not for the file of a project", legal)
            option, words = commands[name][key], name.split()
            _nested(defaults, words)[option.name] = value
            is_given = not given.isdisjoint((*option.opts, *option.secondary_opts))
            if list(args[: len(words)]) == words and not is_given:
                applied[key] = f"{key} = {value} ({path.name})"
    return Settings(defaults, tuple(applied.values()))


def leaves(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The commands, those of a group with its name in front."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield before + name, command


def _files(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any], Sequence[str]]]:
    """Each file with its table and the keys that it may have; no keys: every option."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    own = Path(home, "npusmith", FILE)
    if own.is_file():
        yield own, _read(own), ()
    for place in _places(folder):
        if (path := place / FILE).is_file():
            yield path, _read(path), PROJECT_OPTIONS
            return
        if (path := place / "pyproject.toml").is_file():
            tool = _read(path).get("tool")
            table = tool.get("npusmith") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                yield path, table, PROJECT_OPTIONS
                return


def _places(folder: Path) -> Iterator[Path]:
    """The folder, and those above it in the same repository; no others, which may be anybody's."""
    above = [folder, *folder.parents]
    roots = [i for i, place in enumerate(above) if (place / ".git").exists()]
    yield from above[: roots[0] + 1 if roots else 1]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _error(path, f"more than {_MOST_BYTES:,} bytes")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # TOML and UTF-8 errors are values
        raise _error(path, str(error)) from error


def _values(
    path: Path, table: Mapping[str, Any], commands: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, Any]]:
    """Commands, keys and values: those for all commands first, then those of its own table."""
    for key, value in table.items():
        if not isinstance(value, dict):
            taking = [name for name, options in commands.items() if key in options]
            if not taking:
                raise _error(path, f"no command has an option {key}")
            yield from ((name, key, value) for name in taking)
    for name, values in _tables(table):
        if name not in commands:
            raise _error(path, f"there is no command {name}", sorted(commands))
        for key, value in values.items():
            if key not in commands[name]:
                raise _error(path, f"{name} has no option {key}", sorted(commands[name]))
            yield name, key, value


def _tables(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tables by their commands: [run], [knowledge.add]."""
    for key, value in table.items():
        if isinstance(value, dict):
            plain = {name: item for name, item in value.items() if not isinstance(item, dict)}
            if plain or not value:
                yield before + key, plain
            yield from _tables(value, f"{before}{key} ")


def _options(command: Any) -> dict[str, Any]:
    """The options of a command by their names without dashes; --help and --json are no defaults."""
    return {
        name.removeprefix("--"): item
        for item in command.params
        if item.param_type_name == "option" and item.name not in ("help", "json")
        for name in item.opts
        if name.startswith("--")
    }


def _nested(defaults: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    for word in words:
        defaults = defaults.setdefault(word, {})
    return defaults


def _error(path: Path, message: str, legal: Sequence[str] = ()) -> NpusmithError:
    return NpusmithError("settings-file", message, Place(str(path)), legal=", ".join(legal))
