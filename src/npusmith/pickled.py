"""A module or function of the calling program as a task file: `save(what, inputs, folder)`.

The program's objects go into a file by cloudpickle, classes of scripts and notebooks by value.
They are read in the sandbox alone, by the task that stands beside them.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import torch

from npusmith.errors import TaskError
from npusmith.task.load import identifier
from npusmith.task.trials import python_places

PREFIX = "held."  # of the module's parameters, in the task's Model
_MOST_BYTES = 1 << 30
_TEXT = '''"""{summary}"""

# {name} as it was in the program that called npusmith; sha256 of what is held: {digest}

import pickle
from pathlib import Path

import torch


def _held():
    return pickle.loads(Path(__file__).with_name("{file}").read_bytes())


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.held = _held()["what"]

    def forward(self, {arguments}):
        return self.held({arguments})


def _like(value):
    """Other values of the same kind: the example's own in another order."""
    if not torch.is_tensor(value) or value.numel() < 2:
        return value
    flat = value.detach().flatten()
    if not (flat == flat[0]).all():
        return flat[torch.randperm(flat.numel())].reshape(value.shape)
    if value.is_floating_point():  # it tells its shape and type only
        return torch.randn(value.shape).to(value.dtype)
    return value


def get_inputs():
    return [_like(value) for value in _held()["inputs"]]


def get_init_inputs():
    return []
'''


def save(what: Any, inputs: Sequence[Any], folder: Path, name: str = "") -> Path:
    """Write NAME.py and NAME.pkl into `folder`; gives the path of the task.

    `what`: a torch.nn.Module, or a function of tensors. `inputs`: an example of each argument; the
    judge draws others like them. Raises TaskError task-pickle for what cannot be saved.
    """
    called = name or getattr(what, "__name__", "") or type(what).__name__
    stem = identifier(called)
    try:
        with _own_modules_by_value(), torch.no_grad():
            data = cloudpickle.dumps({"what": what, "inputs": [*map(_plain, inputs)]})
    except Exception as error:
        raise TaskError(
            "task-pickle",
            f"{called} cannot be saved for the sandbox: {error}",
            seen=repr(what)[:200],
        ) from error
    if len(data) > _MOST_BYTES:
        raise TaskError(
            "task-pickle", f"{called} and its inputs are too large", seen=f"{len(data):,}"
        )
    arguments = ", ".join(_names(what, len(inputs)))
    text = _TEXT.format(
        summary=_summary(what, called), name=called, digest=hashlib.sha256(data).hexdigest(),
        file=f"{stem}.pkl", arguments=arguments,
    )  # fmt: skip
    (folder / f"{stem}.pkl").write_bytes(data)
    path = folder / f"{stem}.py"
    path.write_text(text, encoding="utf-8")
    return path


def _plain(value: Any) -> Any:
    """Without gradients, views and devices: what another process can have."""
    return value.detach().cpu().clone() if isinstance(value, torch.Tensor) else value


def _names(what: Any, count: int) -> list[str]:
    """Those of forward's parameters; reports and kernels use them."""
    call = what.forward if isinstance(what, torch.nn.Module) else what
    found: list[inspect.Parameter] = []
    with contextlib.suppress(TypeError, ValueError):
        found += inspect.signature(call).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [item.name for item in found if item.kind in plain][:count]
    return known if len(known) == count else [f"x{number}" for number in range(count)]


def _summary(what: Any, called: str) -> str:
    said = (inspect.getdoc(what) if inspect.isfunction(what) else "") or called
    first = said.partition("\n")[0].replace("\\", "/").replace('"', "'")
    return first.strip() or called


@contextlib.contextmanager
def _own_modules_by_value() -> Iterator[None]:
    """What is not installed is not there in the sandbox: classes of such modules go by value."""
    places = python_places()
    registered = [item for item in [*sys.modules.values()] if _is_own(item, places)]
    for item in registered:
        cloudpickle.register_pickle_by_value(item)
    try:
        yield
    finally:
        for item in registered:
            cloudpickle.unregister_pickle_by_value(item)


def _is_own(module: ModuleType, places: Sequence[Path]) -> bool:
    """Is it a module with a file that a box does not read? `places`: what boxed Python reads."""
    file = getattr(module, "__file__", None)
    name = getattr(module, "__name__", "")
    if (
        not file
        or name == "__main__"
        or name not in sys.modules
        or name.partition(".")[0] == "npusmith"
    ):
        return False
    return not any(Path(file).is_relative_to(place) for place in places)
