"""Containers of a module's own: dataclasses, and mappings that are no dict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def named_items(value: Any) -> dict[Any, Any] | None:
    """What a mapping or a dataclass holds, in its order; None for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    return None
