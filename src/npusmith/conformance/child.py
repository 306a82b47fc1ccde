"""The boxed child: runs a task's reference and its answer on some cases. Orders come on stdin.

Each case leaves two lines in the file of results: one when it starts, so that whoever waits knows
which case ended the process, and one with what came out.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import math
import os
import random
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from npusmith.conformance import rules, stubs
from npusmith.conformance.suite import read_cases
from npusmith.errors import NpusmithError
from npusmith.task.golden import Golden, _Widen, widen

_GOLDEN_BYTES = 64 << 20  # of inputs; above this float64 costs more than it tells
_MARGIN = 8  # inputs are at most so many times the shapes that stand in the table
_ANY_ERROR = (Exception,)


class Param(dict[str, Any]):
    """A row of the table of cases, as the suite's files read it."""


def main() -> None:
    orders = json.loads(sys.stdin.read())
    sys.argv = sys.argv[:1]
    torch.set_num_threads(int(orders["threads"]))
    stubs.install()
    sys.path.insert(0, orders["modules"])
    folder = Path(orders["folder"])
    out = Path(orders["out"])
    try:
        params = {int(row["case_id"]): Param(row) for row in read_cases(folder)}
        module = _load("model_module", folder / "validation" / "module.py")
        prepare = module
        if not hasattr(module, "get_init_inputs"):
            prepare = _load("prepare_inputs_module", folder / "validation" / "prepare_inputs.py")
    except _ANY_ERROR as error:
        for case in orders["cases"]:
            _say(out, {"case": case, "error": _words(error)})
        return
    for case in orders["cases"]:
        _say(out, {"start": case})
        record = out.with_suffix(f".{case}")
        os.environ["NPUSMITH_FINDINGS"] = str(record)
        most, seeds = int(orders["most_bytes"]), int(orders["seeds"])
        first = int(orders.get("seed", 0))
        found = _run_seeds(module, prepare, params[case], most, range(first, first + seeds))
        if orders.get("nulls") and "skipped" not in found:
            found["weak"] = _null_kernels(module, prepare, params[case])
        _say(out, {"case": case, **found, **_findings(record)})


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _say(out: Path, line: dict[str, Any]) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _words(error: BaseException) -> str:
    if isinstance(error, NpusmithError):
        return f"{error.code}: {error.message}" + (f" ({error.place})" if error.place.file else "")
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
    return f"{type(error).__name__}: {error}{where}"[:500]


# ---- one case


def _run_seeds(
    module: ModuleType, prepare: ModuleType, param: Param, most: int, seeds: range
) -> dict[str, Any]:
    """One case on several seeds, the official one first; the first one that fails ends it."""
    size = _estimate(prepare, param, most)
    if size > most:
        return {"skipped": f"{size / 1e6:.0f} MB of inputs"}
    found = _run_case(module, prepare, param, size, seeds[0])
    for seed in seeds[1:]:
        if not found.get("strict"):
            break
        more = _run_case(module, prepare, param, size, seed)
        for name in ("strict", "precise"):
            found[name] = found[name] and bool(more.get(name))
        for name, seconds in more["stages"].items():
            found["stages"][name] = round(found["stages"].get(name, 0) + seconds, 3)
        if more.get("error") and not found.get("error"):
            found["error"] = f"seed {seed}: {more['error']}"
    return found


def _run_case(
    module: ModuleType, prepare: ModuleType, param: Param, size: int, seed: int
) -> dict[str, Any]:
    start = time.monotonic()
    stage = "inputs"
    found: dict[str, Any] = {"stages": {}, "compiled": True}

    def passed(name: str) -> str:
        nonlocal start
        found["stages"][stage] = round(time.monotonic() - start, 3)
        start = time.monotonic()
        return name

    try:
        _seed(seed)
        init = list(prepare.get_init_inputs(param, device="cpu"))
        inputs = list(prepare.get_inputs(param, device="cpu"))
        stage = passed("reference")
        model = module.Model(*copy.deepcopy(init))
        wanted = _detached(model(*copy.deepcopy(inputs)))
        stage = passed("candidate")
        with torch.no_grad():
            candidate = module.ModelNew(*copy.deepcopy(init))
            got = _detached(candidate(*copy.deepcopy(inputs)))
        stage = passed("compare")
        found.update(_judge(module, prepare, param, init, inputs, wanted, got, size))
        passed("")
    except _ANY_ERROR as error:
        found["error"] = f"{stage}: {_words(error)}"
        found["code"] = error.code if isinstance(error, NpusmithError) else ""
    return found


def _judge(
    module: ModuleType,
    prepare: ModuleType,
    param: Param,
    init: list[Any],
    inputs: list[Any],
    wanted: Any,
    got: Any,
    size: int,
) -> dict[str, Any]:
    result: dict[str, Any] = {"official": False, "strict": False, "precise": False}
    notes = []
    try:
        result["official"] = rules.official(
            prepare, param, copy.deepcopy(wanted), copy.deepcopy(got)
        )
    except _ANY_ERROR as error:
        notes.append(f"official rule: {_words(error)}")
    try:
        said = rules.strict(wanted, got)
        result["strict"] = result["official"] and not said
        notes += [f"strict: {said}"] if said else []
        said = rules.precise(wanted, got, None)
        # float64 takes a second to load: only for answers that are not close to the reference
        if said and size <= _GOLDEN_BYTES:
            said = rules.precise(wanted, got, _golden(module, init, inputs, wanted))
        result["precise"] = result["strict"] and not said
        notes += [f"precise: {said}"] if said and not notes else []
    except _ANY_ERROR as error:
        notes.append(f"our rules: {_words(error)}")
    result["error"] = "; ".join(notes)
    return result


def _null_kernels(module: ModuleType, prepare: ModuleType, param: Param) -> list[str]:
    """Kernels that do nothing and pass the suite's own rule on seed 0."""
    try:
        _seed(0)
        init = list(prepare.get_init_inputs(param, device="cpu"))
        inputs = list(prepare.get_inputs(param, device="cpu"))
        wanted = _detached(module.Model(*copy.deepcopy(init))(*copy.deepcopy(inputs)))
    except _ANY_ERROR:
        return []
    answers = {"a kernel that returns zeros": _zeros(wanted)}
    if isinstance(wanted, torch.Tensor):
        for at, given in enumerate(inputs):
            if isinstance(given, torch.Tensor) and given.shape == wanted.shape:
                answers[f"a kernel that returns its input {at}"] = given
    return [name for name, answer in answers.items() if _would_pass(prepare, param, wanted, answer)]


def _zeros(item: Any) -> Any:
    if isinstance(item, (list, tuple)):
        return type(item)(_zeros(part) for part in item)
    return torch.zeros_like(item) if isinstance(item, torch.Tensor) else item


def _would_pass(prepare: ModuleType, param: Param, wanted: Any, answer: Any) -> bool:
    try:
        return rules.official(prepare, param, copy.deepcopy(wanted), copy.deepcopy(answer))
    except _ANY_ERROR:
        return False


def _golden(
    module: ModuleType, init: list[Any], inputs: list[Any], wanted: Any
) -> list[Any] | None:
    """The reference in float64; None where it cannot run so."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        model = Golden(module.Model(*_widened(copy.deepcopy(init))), "").model
        if model is None:
            return None
        with _Widen(), torch.no_grad():
            found = rules.listed(model(*_widened(copy.deepcopy(inputs))))
    except _ANY_ERROR:
        return None
    finally:
        torch.set_default_dtype(before)
    same = [getattr(item, "shape", None) for item in rules.listed(wanted)]
    return found if [getattr(item, "shape", None) for item in found] == same else None


def _widened(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return widen(item)
    if isinstance(item, (list, tuple)):
        return type(item)(_widened(part) for part in item)
    return item


def _detached(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.detach()
    if isinstance(item, (list, tuple)):
        return type(item)(_detached(part) for part in item)
    return item


def _seed(seed: int) -> None:
    """The suite draws without a seed; a case that can be repeated is worth more."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def _findings(record: Path) -> dict[str, Any]:
    """What the calls of a case left in the record."""
    if not record.exists():
        return {}
    calls = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    found = [finding for call in calls for finding in call["findings"]]
    return {
        "built": True,
        "findings": [item for item in found if item["level"] == "error"],
        "warnings": [item for item in found if item["level"] == "warning"],
        "build": round(sum(call["build_seconds"] for call in calls), 3),
        "run": round(sum(call["run_seconds"] for call in calls), 3),
    }


# ---- how large the inputs would be


def _estimate(prepare: ModuleType, param: Param, most: int) -> int:
    """Bytes of all inputs, without making them; by the shapes of the table where that fails, or
    where these are far below `most`."""
    guess = _literal_bytes(param)
    if 0 < guess * _MARGIN <= most:
        return guess
    try:
        _seed(0)
        made = (
            prepare.get_init_inputs(param, device="meta"),
            prepare.get_inputs(param, device="meta"),
        )
        return _bytes(made)
    except _ANY_ERROR:
        return guess


def _bytes(item: Any) -> int:
    if isinstance(item, torch.Tensor):
        return int(item.numel() * item.element_size())
    if isinstance(item, (list, tuple)):
        return sum(map(_bytes, item))
    return 0


def _literal_bytes(param: Param) -> int:
    width = getattr(getattr(torch, str(param.get("dtype", "")), None), "itemsize", 4)
    total = 0
    for value in param.values():
        try:
            total += _elements(ast.literal_eval(value)) if isinstance(value, str) else 0
        except (ValueError, SyntaxError):
            continue
    m, k, n = (param.get(name) for name in ("m", "k", "n"))
    if isinstance(m, int) and isinstance(k, int) and isinstance(n, int):
        total += m * k + k * n + m * n
    return total * int(width)


def _elements(shape: Any) -> int:
    if isinstance(shape, (list, tuple)) and shape and all(isinstance(n, int) for n in shape):
        return math.prod(shape)
    return sum(map(_elements, shape)) if isinstance(shape, (list, tuple)) else 0


if __name__ == "__main__":
    main()
