"""Running the task's own code in the sandboxed child, and blaming its failures on its lines."""

from __future__ import annotations

import contextlib
import errno
import linecache
import random
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from npusmith.errors import Place, TaskError
from npusmith.ir.dtypes import DType
from npusmith.task import lacking
from npusmith.task.isolated.containers import named_items

Tensor = Any  # torch.Tensor; torch has no types under our checker's settings
Literals = (int, float, str, type(None))  # bool is an int
TASK_MODULE = "npusmith_task"  # the module that a task's file is
_NO_MEMORY = ("can't allocate memory", "not enough memory", "Cannot allocate memory")


def dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def known_dtype(tensor: Tensor) -> DType | None:
    """The chip's element type, or None when the chip has no such type."""
    name = dtype_name(tensor)
    return DType(name) if name in {item.value for item in DType if item.is_computed} else None


BUILDING, CALLING = "Model()", "forward()"  # what is being done
# What to do where the task's own parts do not fit together, by what was being done.
_UNFIT = {
    BUILDING: "return the arguments of Model from get_init_inputs()",
    CALLING: "return the arguments of forward() from get_inputs()",
}
_NO_CUDA = "Torch not compiled with CUDA"


@contextlib.contextmanager
def user_code(path: str, doing: str, code: str = "task-raised") -> Iterator[None]:
    """Whatever the task's code raises inside becomes a TaskError with the line in its file."""
    try:
        yield
    except TaskError:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt of the task included
        raise blame(error, path, doing, code) from error


def blame(error: BaseException, path: str, doing: str, code: str) -> TaskError:
    """The TaskError for an exception of the task's own code."""
    frames = [spot for spot in traceback.extract_tb(error.__traceback__) if spot.filename == path]
    place = Place(path, frames[-1].lineno or 0, frames[-1].name) if frames else Place(path)
    text = str(error).strip().partition("\n")[0]
    seen = (frames[-1].line or "") if frames else ""
    message = f"{doing} raised {type(error).__name__}: {text}"[:500]
    # no line of the task's own is to blame for a call that does not fit
    hint = _UNFIT.get(doing, "") if isinstance(error, TypeError) and not frames else ""
    if _NO_CUDA in text:
        hint = "leave the device out: a task runs on the CPU"
    return TaskError(_code_of(error, code), message, place, seen=seen[:200], hint=hint)


def _code_of(error: BaseException, code: str) -> str:
    if isinstance(error, SystemExit):
        return "task-exited"
    if isinstance(error, MemoryError) or any(word in str(error) for word in _NO_MEMORY):
        return "task-memory"
    if any(_is_denied(link) for link in _chain(error)):
        return "task-denied"
    missing = code == "task-raised" and isinstance(error, ModuleNotFoundError)
    return "task-module" if missing else code


def _is_denied(error: BaseException) -> bool:
    if type(error).__name__ == "gaierror":  # a name look-up needs the network
        return True
    refused = isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.EROFS)
    return isinstance(error, PermissionError) or refused


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def load_file(path: str, text: str) -> types.ModuleType:
    """Execute the task's text as a module of its own."""
    module = types.ModuleType(TASK_MODULE)
    module.__file__ = path
    sys.modules[module.__name__] = module
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    with user_code(path, "the task file"):
        exec(compile(text, path, "exec"), module.__dict__)
    return module


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)


def call_init(module: types.ModuleType, path: str, seed: int) -> list[Any]:
    """What get_init_inputs() gives under `seed`."""
    set_seed(seed)
    with user_code(path, "get_init_inputs()"):
        settings = module.get_init_inputs()
    if not isinstance(settings, (list, tuple)):
        refuse(path, "get_init_inputs()", settings)
    return list(settings)


def build_model(module: types.ModuleType, path: str, seed: int) -> Any:
    """`Model(*get_init_inputs())` in eval mode."""
    settings = call_init(module, path, seed)
    with user_code(path, BUILDING):
        model = module.Model(*settings)
    if not isinstance(model, torch.nn.Module):
        raise TaskError(
            "task-parts", "Model is not a torch.nn.Module", Place(path),
            hint="write class Model(torch.nn.Module)",
        )  # fmt: skip
    return model.eval()


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arguments of one call of forward, flat, with what is needed to nest them again."""

    leaves: tuple[Any, ...]
    tree: Any
    notes: tuple[str, ...] = ()

    @property
    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    @property
    def literals(self) -> list[object]:
        return [leaf for leaf in self.leaves if not isinstance(leaf, torch.Tensor)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(tensor.shape) for tensor in self.tensors]

    def args(self, change: Callable[[Tensor], Tensor] = torch.clone) -> tuple[Any, ...]:
        """Fresh arguments (the model may write into them), each tensor passed through `change`."""
        leaves = [change(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        return tuple(pytree.tree_unflatten(leaves, self.tree))

    def replace(self, tensors: list[Tensor]) -> Inputs:
        """The same call with other tensors."""
        rest = iter(tensors)
        leaves = (next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves)
        return Inputs(tuple(leaves), self.tree, self.notes)


def call_inputs(make: Callable[[], object], path: str, seed: int, what: str) -> Inputs:
    """One list of inputs, made under `seed`."""
    set_seed(seed)
    with user_code(path, what):
        values = make()
    return check_inputs(values, path, what)


def check_inputs(values: Any, path: str, what: str) -> Inputs:
    """A list or tuple of tensors and numbers (lists of them included) as `Inputs`."""
    if not isinstance(values, (list, tuple)):
        refuse(path, what, values)
    leaves, tree = pytree.tree_flatten(list(values))
    notes: list[str] = []
    flat = tuple(_check_leaf(leaf, i, path, what, notes) for i, leaf in enumerate(leaves))
    if any(isinstance(value, dict) for value in values):
        refuse(path, what, next(value for value in values if isinstance(value, dict)))
    return Inputs(flat, tree, tuple(notes))


def _check_leaf(leaf: Any, index: int, path: str, what: str, notes: list[str]) -> Any:
    if isinstance(leaf, Literals):
        return leaf
    if not isinstance(leaf, torch.Tensor):
        refuse(path, f"{what}, item {index}", leaf)
    if leaf.device.type != "cpu" or leaf.layout != torch.strided or leaf.is_quantized:
        seen = f"{leaf.layout} tensor on {leaf.device}".removeprefix("torch.")
        message = f"{what}, item {index} is not a dense tensor in CPU memory"
        raise TaskError("task-inputs", message, Place(path), seen=seen)
    if leaf.numel() == 0:
        seen = f"shape {tuple(leaf.shape)}"
        raise TaskError("task-empty", f"{what}, item {index} is empty", Place(path), seen=seen)
    leaf = leaf.detach().resolve_conj().resolve_neg()
    if not leaf.is_contiguous():
        notes.append(f"input {index} is not contiguous; it is stored in logical order")
    if leaf.is_floating_point() and bool(torch.isnan(leaf).any()):
        notes.append(f"input {index} holds NaN")
    return leaf.contiguous()


def refuse(path: str, what: str, value: object) -> None:
    message = f"{what} returned a {type(value).__name__}"
    raise TaskError("task-inputs", message, Place(path))


def run_model(
    model: Any, args: tuple[Any, ...], path: str, notes: list[str] | None = None
) -> list[Tensor]:
    """forward's outputs as a flat list of contiguous tensors; `notes` takes what to say of them."""
    return [settle(tensor) for tensor in call_model(model, args, path, notes)]


def call_model(
    model: Any, args: tuple[Any, ...], path: str, notes: list[str] | None = None
) -> list[Tensor]:
    """The same as they came: where they lie in the memory of the arguments, they still do."""
    with torch.no_grad(), user_code(path, "forward()"):
        result = lacking.call(model, args, [] if notes is None else notes)
    return flatten(result, path)


def settle(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def flatten(result: object, path: str) -> list[Tensor]:
    """A tensor, or tuples, lists, dicts and dataclasses of them, as one list; None is left out."""
    if isinstance(result, torch.Tensor):
        return [result]
    if (held := named_items(result)) is not None:
        result = [*held.values()]
    if isinstance(result, (tuple, list)) and any(item is not None for item in result):
        return [x for item in result if item is not None for x in flatten(item, path)]
    shown = "" if isinstance(result, (tuple, list)) else f" {result!r}"
    seen = f"{type(result).__name__}{shown}"[:200]
    raise TaskError("task-outputs", "forward() did not return tensors", Place(path), seen=seen)


def short_path(path: str) -> str:
    return Path(path).name
