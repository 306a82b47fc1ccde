"""Calls a built operator on the NPU: `python runner.py ORDER`. Imports nothing of npusmith.

The order is a JSON file: `module` and `operator` name torch.ops.<module>.<operator>; each row of
`calls` lists files of its tensors and the folder for its outputs, and is called `warmup` and then
`repeats` times, of which the last counts. Without calls the device alone is looked at. The reply,
another JSON file, names the device and each call's outputs, or what it raised.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main(path: Path) -> None:
    """Do what the order says; the reply is written last."""
    order = json.loads(path.read_text(encoding="utf-8"))
    import torch
    import torch_npu  # type: ignore[import-not-found]  # noqa: F401  # it registers the device

    npu: Any = vars(torch)["npu"]
    npu.set_device(order["device"])
    reply: dict[str, Any] = {"device": npu.get_device_name(order["device"]), "calls": []}
    if order["calls"]:
        importlib.import_module(order["module"])
        operator = getattr(getattr(torch.ops, order["module"]), order["operator"])
        reply["calls"] = [_call(torch, npu, operator, row) for row in order["calls"]]
    Path(order["reply"]).write_text(json.dumps(reply), encoding="utf-8")


def _call(torch: Any, npu: Any, operator: Any, row: dict[str, Any]) -> dict[str, Any]:
    given = [_read(torch, item).npu() for item in row["inputs"]]
    # more tensors than a schema has arguments are one list
    listed = len(given) > 1 and len(operator.default._schema.arguments) == 1
    try:
        with torch.no_grad():
            for _ in range(row["warmup"] + row["repeats"]):
                made = operator(given) if listed else operator(*given)
            npu.synchronize()
    except (RuntimeError, ValueError, TypeError) as error:
        return {"error": str(error)[:2000], "outputs": []}
    tensors = [made] if torch.is_tensor(made) else list(made)
    folder = Path(row["folder"])
    return {"error": "", "outputs": [_write(torch, item, folder, at)
                                     for at, item in enumerate(tensors)]}  # fmt: skip


def _read(torch: Any, item: dict[str, Any]) -> Any:
    data = bytearray(Path(item["file"]).read_bytes())
    dtype = getattr(torch, item["dtype"])
    flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return flat.reshape(item["shape"])


def _write(torch: Any, tensor: Any, folder: Path, at: int) -> dict[str, Any]:
    held = tensor.detach().cpu().contiguous()
    file = folder / f"output{at}"
    # one element counts as contiguous whatever its stride, but a view as bytes wants stride 1
    flat = held.as_strided((held.numel(),), (1,))
    file.write_bytes(flat.view(torch.uint8).numpy().tobytes())
    return {
        "file": str(file),
        "dtype": str(held.dtype).removeprefix("torch."),
        "shape": list(held.shape),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
