"""Groups of options: a dataclass that a command takes as one parameter, a panel in its help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer

from npusmith.cli.reply import Job


def panel(name: str) -> Callable[..., Any]:
    """What makes options that stand together, under that name, in help and in docs/cli.md."""

    def option(flag: str | tuple[str, ...], text: str, **more: Any) -> Any:
        flags = (flag,) if isinstance(flag, str) else flag
        return typer.Option(*flags, help=text, rich_help_panel=name, **more)

    return option


def expand_groups(command: Callable[..., Job]) -> Callable[..., Job]:
    """A command in whose signature each field of a dataclass stands as an option of its own.

    The fields have their options as annotations. The parser calls by keyword.
    """
    hints = get_type_hints(command, include_extras=True)
    taken = signature(command).parameters.values()
    groups = {item.name: hints[item.name] for item in taken if is_dataclass(hints[item.name])}
    shown: list[Parameter] = []
    for item in taken:
        if item.name in groups:
            shown += _options(groups[item.name])
        else:
            shown.append(item.replace(annotation=hints[item.name], kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def call(**values: Any) -> Job:
        for name, group in groups.items():
            given = [each.name for each in fields(group) if each.name in values]
            values[name] = group(**{each: values.pop(each) for each in given})
        return command(**values)

    call.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    call.__annotations__ = {item.name: item.annotation for item in shown}
    return call


def names_of(*groups: type[Any]) -> frozenset[str]:
    """The names of all options of these groups."""
    return frozenset(field.name for group in groups for field in fields(group))


def refuse_unread(context: typer.Context, chosen: str, reads: Mapping[str, Set[str]]) -> None:
    """BadParameter for an option on the command line that only another choice would read.

    `reads`: the names of the options that each value of --writer reads; an option that none of them
    names is read whatever was chosen. Defaults of npusmith.toml may stand for another writer.
    """
    for option in context.command.params:
        readers = [choice for choice, names in reads.items() if option.name in names]
        source = context.get_parameter_source(option.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if given and readers and chosen not in readers:
            wanted = " or ".join(f"--writer {choice}" for choice in readers)
            raise typer.BadParameter(f"{option.opts[0]} is for {wanted}; this is {chosen}")


def _options(group: type[Any]) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        assert field.default is not MISSING
        yield Parameter(
            field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
