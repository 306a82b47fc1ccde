"""A writer's settings as `NAME=VALUE,NAME=VALUE`: how a bench names them. Nothing secret is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npusmith.agent.budget import Budget, Prices
from npusmith.agent.models import Choice
from npusmith.agent.policy import Terms
from npusmith.agent.task_session import Setting
from npusmith.errors import NpusmithError

_CHOICE = {
    "model": "model", "base-url": "base_url", "key-env": "key_name", "record": "record",
    "concurrency": "concurrency", "silence": "silence", "call-seconds": "seconds",
    "attempts": "attempts", "replay": "replay",
}  # fmt: skip
_TERMS = {
    "samples": "samples", "rounds": "rounds", "patience": "patience", "optimise": "optimise",
    "target": "target", "temperature": "temperature", "max-tokens": "max_tokens",
    "conversation": "conversation",
}  # fmt: skip
_BUDGET = {"budget-tokens": "tokens", "budget-usd": "usd"}
_PRICES = {"price-prompt": "prompt", "price-answer": "answer"}
_OTHER = ("route", "knowledge", "time", "journal", "start")
NAMES = (*_CHOICE, *_TERMS, *_BUDGET, *_PRICES, *_OTHER)


def read_options(text: str) -> tuple[Setting, Path | None]:
    """The setting, and the journal's folder where one is named; raises usage and budget-zero."""
    return settle(split_options(text))


def split_options(text: str) -> dict[str, str]:
    """The options by their names; raises usage for one that there is not, or that comes twice."""
    given: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, sign, value = part.partition("=")
        if not sign or name not in NAMES or name in given:
            raise NpusmithError(
                "usage", f"the agent has no option {part[:80]}", seen=part[:80],
                legal=", ".join(NAMES),
            )  # fmt: skip
        given[name] = value
    return given


def settle(given: Mapping[str, str]) -> tuple[Setting, Path | None]:
    """What read_options gives, out of options by their names."""
    journal = Path(given["journal"]) if "journal" in given else None
    return make_setting(given), journal


def make_setting(given: Mapping[str, Any]) -> Setting:
    """A setting out of options by their names; absent ones have their defaults."""
    try:
        prices = Prices.model_validate(_part(given, _PRICES))
        setting = Setting(
            choice=Choice.model_validate(_part(given, _CHOICE)),
            terms=Terms.model_validate(_part(given, _TERMS)),
            budget=Budget.model_validate({**_part(given, _BUDGET), "prices": prices}),
            route=given.get("route") or "tile",
            knowledge=given.get("knowledge") or "",
            timed=given.get("time") or False,
            start=given.get("start") or "parts",
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][-1]).replace("_", "-")
        message = f"{name}: {first['msg'].lower()}"
        raise NpusmithError("usage", message, seen=str(first["input"])[:80]) from error
    setting.budget.checked()
    return setting


def _part(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        field: given[name] for name, field in names.items() if given.get(name) not in (None, "")
    }
