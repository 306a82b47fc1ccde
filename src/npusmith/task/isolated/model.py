"""The process in which a candidate's class runs; nothing that it writes is believed.

It has the class's arguments and one call's inputs at a time, as data. The compiled module stands
behind a pipe; neither the task's file nor the twin, the judge or a later call's inputs are here.
"""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from npusmith.errors import NpusmithError, Place, TaskError
from npusmith.task import alias, user
from npusmith.task import parameter_draws as draws
from npusmith.task.isolated import values
from npusmith.twin import frames

_CODES = "module-failed"


def main(orders: dict[str, Any], pipes: tuple[int, int]) -> None:
    """Build the class, then answer calls until the other side is gone."""
    try:
        model = _build(orders, pipes)
        head, blobs = _ask(pipes, {"kind": "ready"})
        buffers: dict[Any, list[torch.Tensor]] = {}
        own: dict[str, torch.Tensor] = {}
        while head.get("kind") == "run":
            answer, data = _run(orders, model, head, blobs, buffers, own)
            head, blobs = _ask(pipes, answer, data)
    except EOFError:
        return
    except BaseException as error:
        frames.send(pipes[1], {"kind": "failed", "error": _note(error, orders)})


def _ask(pipes: tuple[int, int], head: dict[str, Any], blobs: Any = ()) -> Any:
    frames.send(pipes[1], head, blobs)
    return frames.receive(pipes[0])


def _build(orders: dict[str, Any], pipes: tuple[int, int]) -> Any:
    for name in orders["stubs"]:
        importlib.import_module(name).install()
    _offer(orders["module"], pipes)
    spec = importlib.util.spec_from_file_location("npusmith_candidate", orders["model"])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with user.user_code(orders["model"], "the model's file"):
        spec.loader.exec_module(module)
    kind = getattr(module, orders["entry"], None)
    if kind is None:
        raise NpusmithError(_CODES, f"the candidate has no class {orders['entry']}")
    head, blobs = _ask(pipes, {"kind": "init"})
    given = _value(head["args"], blobs, "get_init_inputs()")
    settings, state = given["settings"], given.get("state")
    user.set_seed(int(orders["seed"]))
    if state is not None:
        torch.set_rng_state(state)
    with user.user_code(orders["model"], f"{orders['entry']}()"):
        model = kind(*settings)
        return model if orders["training"] else model.eval()


def _value(tree: Any, blobs: Any, what: str) -> Any:
    try:
        return values.unpack(tree, values.hold(blobs, copy=True))
    except ValueError as error:
        raise NpusmithError(_CODES, f"{what} has {error}") from error


def _run(
    orders: dict[str, Any], model: Any, head: dict[str, Any], blobs: Any,
    buffers: dict[Any, list[torch.Tensor]], own: dict[str, torch.Tensor],
) -> tuple[dict[str, Any], Any]:  # fmt: skip
    """One call. Inputs of the same shapes lie in the same memory each time."""
    given = _value(head["args"], blobs, "get_inputs()")
    fresh, fixed = given["args"], _put(model, given["drawn"], own)
    inputs = _placed(fresh, buffers)
    with torch.no_grad(), user.user_code(orders["model"], "forward()"):
        result = model(*inputs)
    packed = values.pack(result)
    told = {
        "kind": "outputs", "result": packed.tree,
        "alias": alias.shared(result, inputs), "writes": alias.changed(fresh, inputs),
        "fixed": fixed,
    }  # fmt: skip
    return told, packed.blobs()


def _put(model: Any, drawn: dict[str, torch.Tensor], own: dict[str, torch.Tensor]) -> list[str]:
    """Give the class's parameters these values, and its own ones (kept in `own`) to the others.

    The names that it does not have in that shape; where there are any, nothing changes.
    """
    held = draws.tensors_of(model) if drawn or own else {}
    fixed = [
        name for name, value in drawn.items() if name not in held or held[name].shape != value.shape
    ]
    if not fixed:
        own |= {name: held[name].detach().clone() for name in drawn if name not in own}
        draws.put(model, own | drawn)
    return fixed


def _placed(value: Any, buffers: dict[Any, list[torch.Tensor]]) -> Any:
    tensors = alias.tensors(value)
    key = tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors)
    held = buffers.setdefault(key, [torch.empty_like(tensor) for tensor in tensors])
    rest = iter([kept.copy_(tensor) for kept, tensor in zip(held, tensors, strict=True)])
    return alias.mapped(lambda tensor: next(rest), value)


# ------------------------------------------------------------------------- the compiled module


def _offer(name: str, pipes: tuple[int, int]) -> None:
    """`import name` gives a module whose functions are called in the other process."""
    sys.meta_path.insert(0, _Finder(name, pipes))


class _Finder(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    def __init__(self, name: str, pipes: tuple[int, int]) -> None:
        self.name = name
        self.pipes = pipes

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self) if name == self.name else None

    def create_module(self, spec: Any) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        head, _ = _ask(self.pipes, {"kind": "open"})
        if "error" in head:
            raise _raised(head["error"])
        for function in head["functions"]:
            setattr(module, function, _function(self.pipes, function))
        for member, value in head["values"].items():
            setattr(module, member, value)
        for schema in head["operators"]:
            _register(schema, self.pipes)


def _function(pipes: tuple[int, int], name: str) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        packed = values.pack((args, named))
        head = {"kind": "call", "name": name, "args": packed.tree}
        reply, blobs = _ask(pipes, head, packed.blobs())
        if "error" in reply:
            raise _raised(reply["error"])
        changed, count = reply["changed"], len(packed.pieces)
        for at, blob in zip(changed, blobs, strict=False):
            packed.pieces[at].write(blob)
        rest = values.hold(blobs[len(changed) :], copy=True)
        return values.unpack(reply["result"], [*packed.pieces[:count], *rest])

    call.__name__ = name.rpartition(".")[2]
    return call


def _register(schema: str, pipes: tuple[int, int]) -> None:
    """An operator of torch.ops that the module has registered, by its schema."""
    space, _, rest = schema.partition("::")
    library = torch.library.Library(space, "FRAGMENT")
    library.define(rest)
    _LIBRARIES.append(library)
    name = rest.partition("(")[0]
    library.impl(name, _function(pipes, f"torch.ops.{space}::{name}"), "CompositeExplicitAutograd")


_LIBRARIES: list[Any] = []  # they live as long as the process


def _raised(row: dict[str, Any]) -> BaseException:
    """The exception of the other process."""
    if "code" in row:
        return NpusmithError(
            row["code"], row["message"], Place(row["file"], row["line"]), seen=row["seen"]
        )
    kind = getattr(builtins, row["type"], RuntimeError)
    plain = isinstance(kind, type) and issubclass(kind, Exception) and "Unicode" not in row["type"]
    return kind(row["message"]) if plain else RuntimeError(row["message"])


def _note(error: BaseException, orders: dict[str, Any]) -> dict[str, Any]:
    """Code, words and line of what went wrong."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NpusmithError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        code = _CODES if isinstance(cause, TaskError) else cause.code
        return {"code": code, "message": cause.message, "file": cause.place.file,
                "line": cause.place.line, "seen": cause.seen[:2000]}  # fmt: skip
    place = user.blame(error, orders["model"], "the candidate", "task-raised").place
    message = f"{type(error).__name__}: {error}".partition("\n")[0][:500]
    return {"code": _CODES, "message": message, "file": place.file, "line": place.line, "seen": ""}
