"""A module that runs something else in forward's place, with the state of the one it stands for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


class TracedModule(torch.nn.Module):  # type: ignore[misc]
    """Children, parameters and buffers are `model`'s, under their names; forward is `run`.

    `forward`: whose arguments it has, so that the inputs of an export have their names.
    """

    def __init__(
        self, model: torch.nn.Module, run: Callable[..., Any], forward: Callable[..., Any]
    ) -> None:
        super().__init__()
        self._modules, self._parameters = model._modules, model._parameters
        self._buffers = model._buffers
        self._non_persistent_buffers_set = model._non_persistent_buffers_set
        self.training = model.training
        self.forward = functools.wraps(forward)(run)
