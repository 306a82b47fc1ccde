"""Makes the tables in src/npusmith/target/measured/ from published measurements.

    python runs/eager_tables.py MEASUREMENTS.csv KERNELBENCH_LEVEL1_FOLDER

MEASUREMENTS.csv has the columns id, source, chip, kernel, shape, dtype, variant, value, notes, as
in the collection this project was calibrated on. The folder is level1 of KernelBench at commit
21fbe5a: each problem is exported (its code runs, on fake tensors) and only the calls that eager
PyTorch makes for it are kept. Rows whose calls
cannot be told are counted and printed, never guessed.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from npusmith.ir.dtypes import DType
from npusmith.task.export import eager_nodes
from npusmith.task.graph import Graph, GraphInput
from npusmith.timing.calls import Call, Operand, graph_calls

FOLDER = Path(__file__).parents[1] / "src/npusmith/target/measured"
COLUMNS = ("id", "chip", "set", "case", "us", "roofline_us", "kernels", "calls", "source")
Shapes = list[Any]
Make = Callable[[list[Operand], dict[str, Any], str], list[Call]]


def main(argv: list[str]) -> None:
    """Write cann_bench.csv, kernelbench.csv and others.csv; print what was left out."""
    with Path(argv[0]).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["id"].startswith("eager")]
    kernelbench = Path(argv[1])
    tables: dict[str, list[dict[str, str]]] = {"cann_bench": [], "kernelbench": [], "others": []}
    left: Counter[str] = Counter()
    for row in rows:
        table = table_of(row["source"])
        try:
            calls, why = calls_of(row, table, kernelbench)
        except (ValueError, KeyError, IndexError, json.JSONDecodeError) as error:
            calls, why = [], f"{type(error).__name__} {error}"
        if not calls:
            left[f"{row['kernel']}: {why[:90]}"] += 1
            continue
        tables[table].append(record(row, table, calls))
    FOLDER.mkdir(exist_ok=True)
    for name, records in tables.items():
        with (FOLDER / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        print(f"{name}: {len(records)} rows")
    print(f"left out: {sum(left.values())} of {len(rows)}")
    for text, count in left.items():
        print(f"  {count:3} {text}")


def table_of(source: str) -> str:
    if "tasks/metadata" in source:
        return "cann_bench"
    return "kernelbench" if "stanford_bench" in source else "others"


def record(row: dict[str, str], table: str, calls: list[Call]) -> dict[str, str]:
    roofline = re.search(r"roofline (?:in same file )?([\d.]+) us", row["notes"])
    return {
        "id": row["id"],
        "chip": row["chip"].removesuffix("-class"),
        "set": table,
        "case": row["kernel"].removeprefix("KernelBench L1 ").removeprefix("torch_npu "),
        "us": row["value"],
        "roofline_us": roofline[1] if roofline else "",
        "kernels": kernels_of(row["notes"]),
        "calls": "; ".join(call.text() for call in calls),
        "source": row["source"].split(" + ")[0].split(" (")[0],
    }


def kernels_of(notes: str) -> str:
    found = re.search(r"kernels (.*?)(?:; library|$)", notes)
    return "" if not found or found[1] == "not listed" else found[1]


def calls_of(row: dict[str, str], table: str, kernelbench: Path) -> tuple[list[Call], str]:
    """The calls behind one row; none, and why, where they cannot be told."""
    roofline = re.search(r"roofline in same file ([\d.]+) us", row["notes"])
    if roofline and float(roofline[1]) == float(row["value"]):
        return [], "the time is the roofline: a fill-in"
    if table == "kernelbench":
        return problem_calls(kernelbench / (row["kernel"].split()[-1] + ".py")), ""
    make = MAKERS.get(row["kernel"])
    if make is None:
        return [], "not an operation of PyTorch (a sequence that is not listed)"
    if row["source"].endswith("kernels/python/flash_atten/README.md"):
        return [], "a target band, not a measurement"
    if table == "others" and "cann-bench" not in row["source"]:
        return make([], {"shape": row["shape"], "dtype": row["dtype"]}, ""), ""
    return make(operands(row), attributes(row), kernels_of(row["notes"])), ""


# --- reading a row -------------------------------------------------------------------------------


def operands(row: dict[str, str]) -> list[Operand]:
    """All tensors of a case in order; a list of tensors is flattened; null is skipped."""
    shapes = json.loads(row["shape"])
    dtypes = re.findall(r"\w+", row["dtype"])
    found = []
    for i, shape in enumerate(shapes):
        if shape is None:
            continue
        group = shape if shape and isinstance(shape[0], list) else [shape]
        kind = dtypes[i] if i < len(dtypes) else dtypes[0]
        if not row["dtype"].endswith("]") and i >= len(dtypes) - 1:
            kind = {"in": "int32", "int": "int32"}.get(kind, dtypes[0])  # the list was cut off
        found += [Operand(kind, tuple(part)) for part in group]
    return found


def attributes(row: dict[str, str]) -> dict[str, Any]:
    text = row["variant"].removeprefix("attrs ")
    try:
        found: dict[str, Any] = json.loads(text)
        return found
    except json.JSONDecodeError:
        pairs = re.findall(r'"(\w+)": (\[[^\]]*\]|[^,\[\]}]+)(?=,|})', text)
        return {name: json.loads(value) for name, value in pairs}


def one(op: str, inputs: list[Operand], outputs: list[Operand], **attrs: object) -> Call:
    kept = tuple(sorted((name, str(value)) for name, value in attrs.items()))
    return Call(op, tuple(inputs), tuple(outputs), kept)


def like(op: str) -> Make:
    """A call that gives a tensor like its first one."""
    return lambda x, a, k: [one(op, x, [broadcast(x)])]


def broadcast(x: list[Operand]) -> Operand:
    largest = max(x, key=lambda item: item.size)
    return Operand(x[0].dtype, largest.shape)


# --- cann-bench ----------------------------------------------------------------------------------


def gelu(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    attrs = {} if a["approximate"] == "none" else {"approximate": a["approximate"]}
    return [one("gelu", x, x, **attrs)]


def exp(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    if k.startswith("AutomaticBufferFusion"):
        return [one("exp_fused", x, x)]
    first = "mul" if k.startswith("Mul") else ""
    return [one(op, x, x) for op in (first, "add", "exp") if op]


def foreach_norm(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    scalars = [Operand(item.dtype, ()) for item in x]
    if k.startswith("ForeachNorm"):
        return [one("foreach_norm", x, scalars)]
    calls = []
    for item, scalar in zip(x, scalars, strict=True):
        if "Cast" in k:
            wide = Operand("float32", item.shape)
            calls += [one("to", [item], [wide])]
            item = wide
        op = "linalg_vector_norm" if "LpNormV2" in k else "norm_power"
        calls += [one(op, [item], [scalar], dim="all")]
    return calls


def swi_glu(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    shape = list(x[0].shape)
    axis = a["dim"] % len(shape)
    whole = tuple(n // 2 * 2 if i == axis else n for i, n in enumerate(shape))
    half = tuple(n // 2 if i == axis else n for i, n in enumerate(shape))
    source = Operand(x[0].dtype, whole)
    slices = [one("copy", [source], [source])] if "Slice" in k else []
    return [*slices, one("swiglu", [source], [Operand(x[0].dtype, half)], dim=axis)]


def addcdiv(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    return [one("foreach_addcdiv", x, x[: len(x) // 3])]


def masked_scale(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    value, mask = x
    narrow = Operand(value.dtype, mask.shape)
    casts = [one("to", [mask], [narrow])] if "Cast" in k else []
    last = [value] if "Muls" in k else [value, Operand(value.dtype, ())]
    return [*casts, one("mul", [value, narrow], [value]), one("mul", last[:1], [value])]


def group_norm(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    return [one("group_norm", x, x[:1], groups=a["num_groups"])]


def segment_sum(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    out = Operand(x[0].dtype, (a["num_segments"], *x[0].shape[1:]))
    sort = "Sorted" in k
    return [one("index_add_sorted" if sort else "index_add", x, [out], dim=0)]


def cross_entropy(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    out = Operand(x[0].dtype, () if a["reduction"] == "mean" else x[1].shape)
    return [one("cross_entropy_loss", x, [out])]


def softmax(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    return [one("softmax", x, x, dim=a["dim"] % len(x[0].shape))]


def rotary(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    mode = "" if a["rotaryMode"] == "half" else "_interleaved"
    return [one("apply_rotary" + mode, x, x[:2])]


def arg_max(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    axis = a["dim"] % len(x[0].shape)
    shape = tuple(n for i, n in enumerate(x[0].shape) if i != axis)
    return [one("argmax", x, [Operand("int64", shape)], dim=axis)]


def dynamic_quant(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    shape = x[0].shape
    return [one("dynamic_quant", x, [Operand("int8", shape), Operand("float32", shape[:-1])])]


def resize(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    out = Operand(x[0].dtype, (*x[0].shape[:2], *a["output_size"]))
    return [one("upsample_bilinear2d", x, [out])]


def pool(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    out = Operand(x[0].dtype, (*x[0].shape[:2], *a["output_size"]))
    return [one("adaptive_avg_pool3d", x, [out])]


def adam(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    return [one("apply_adam_w", x, x[:3])]


def scatter(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    return [one("scatter_reduce", x, x[:1], dim=a["dim"])]


def matmul(op: str, kind: str = "") -> Make:
    def make(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
        left, right = x[:2]
        out = Operand(
            a.get("output_dtype", kind or left.dtype), (*left.shape[:-1], right.shape[-1])
        )
        return [one(op, x, [out])]

    return make


def grouped(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    columns = x[1].shape[1] if a.get("transpose_weight") else x[1].shape[2]
    return [one("grouped_matmul", x, [Operand(x[0].dtype, (x[0].shape[0], columns))])]


def grouped_swiglu(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    rows, columns = x[0].shape[0], x[1].shape[2] // 2
    out = [Operand("int8", (rows, columns)), Operand("float32", (rows,))]
    return [one("grouped_matmul_swiglu_quant", x, out)]


def dequant_swiglu(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    rows, columns = x[0].shape[0], x[0].shape[1] // 2
    out = [Operand("int8", (rows, columns)), Operand("float32", (rows,))]
    return [one("dequant_swiglu_quant", x, out)]


def conv(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    image, weight = x[0], x[1]
    if len(weight.shape) == 3:  # depthwise: one input channel a filter
        weight = Operand(weight.dtype, (weight.shape[0], 1, *weight.shape[1:]))
    stride, dilation = a.get("strides", a.get("stride")), a.get("dilations", a.get("dilation"))
    pads = a.get("pads", a.get("padding"))
    pads = pads if len(pads) == 2 else [pads[0], pads[2]]
    sizes = [
        (image.shape[2 + i] + 2 * pads[i] - dilation[i] * (weight.shape[2 + i] - 1) - 1)
        // stride[i] + 1
        for i in (0, 1)
    ]  # fmt: skip
    out = Operand(image.dtype, (image.shape[0], weight.shape[0], *sizes))
    named = {"stride": stride, "padding": pads, "dilation": dilation}
    plain = {"stride": 1, "padding": 0, "dilation": 1}
    attrs = {n: v for n, v in named.items() if set(v) != {plain[n]}}
    words = {n: ",".join(map(str, v if len(set(v)) > 1 else v[:1])) for n, v in attrs.items()}
    groups = {"groups": a["groups"]} if a.get("groups", 1) != 1 else {}
    return [one("conv2d", [image, weight, *x[2:]], [out], **words, **groups)]


def conv_filter(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    """The kernel size follows from the other sizes: the column of attributes is cut off."""
    image, grad = x
    kernel = [
        (image.shape[i] + 2 * a["pads"][0] - (grad.shape[i] - 1) * a["strides"][0] - 1)
        // a["dilations"][0] + 1
        for i in (2, 3, 4)
    ]  # fmt: skip
    out = Operand("float32", (grad.shape[1], image.shape[1], *kernel))
    return [one("conv3d_backprop_filter", x, [out])]


def transpose(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    out = Operand(x[0].dtype, tuple(x[0].shape[i] for i in a["perm"]))
    return [one("permute_copy", x, [out], perm=",".join(map(str, a["perm"])))]


def add_rms_norm(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    shape = x[0].shape
    out = [Operand("int8", shape), x[0], Operand("float32", shape[:-1])]
    return [one("add_rms_norm_dynamic_quant", x, out)]


def routed(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    return [one("moe_re_routing", x, [x[0]])]


def finalized(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    rows = x[1].shape[0] // max(1, (x[5].shape[1] if len(x) > 6 else 1))
    shape = next((t.shape for t in x[2:] if len(t.shape) == 2 and t.shape[1] == x[0].shape[-1]), ())
    return [one("moe_finalize_routing", x, [Operand(x[0].dtype, shape or (rows, x[0].shape[-1]))])]


def gating(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    rows, count = x[0].shape[0], a["k"]
    out = [Operand(x[0].dtype, (rows, count)), Operand("int32", (rows, count))]
    return [one("moe_gating_topk_softmax", x, out)]


def roi_align(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    shape = (x[1].shape[0], x[0].shape[1], a["outputHeight"], a["outputWidth"])
    return [one("roi_align", x, [Operand(x[0].dtype, shape)])]


def mla_prolog(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    batch, length = x[0].shape[:2]
    heads, rank = x[3].shape[0], x[3].shape[2]
    out = [Operand(x[0].dtype, (batch, length, heads, rank))]
    return [one("mla_prolog", x, out)]


def attention(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    """q, k, v as batch, heads, length, width, whatever the layout of the case."""
    swap = a.get("inputLayout", "BSND") == "BSND"
    order = (0, 2, 1, 3) if swap else (0, 1, 2, 3)
    turned = [Operand(t.dtype, tuple(t.shape[i] for i in order)) for t in x]
    if len(turned) == 5:  # multi-head latent: the rotary part of q and k comes apart
        q, qr, key, kr, value = turned
        q = Operand(q.dtype, (*q.shape[:3], q.shape[3] + qr.shape[3]))
        key = Operand(key.dtype, (*key.shape[:3], key.shape[3] + kr.shape[3]))
        turned = [q, key, value]
    out = Operand(turned[0].dtype, (*turned[0].shape[:3], turned[2].shape[3]))
    causal = {"is_causal": True} if a.get("is_causal") else {}
    return [one("scaled_dot_product_attention", turned, [out], **causal)]


def sparse_attention(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    call = attention(x, a, k)[0]
    q, _, _, picked = call.inputs
    out = Operand(q.dtype, (*q.shape[:3], x[2].shape[3]))
    copies = [one("copy", [x[1]], [x[1]])] if "Slice" in k or "Transpose" in k else []
    del picked
    return [*copies, Call("sparse_attention", call.inputs, (out,), call.attrs)]


# --- the small sets ------------------------------------------------------------------------------


def library_add(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    item = Operand(a["dtype"], tuple(json.loads(a["shape"])))
    return [one("add", [item, item], [item])]


def library_div(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    left, right = (Operand(a["dtype"], tuple(json.loads(part))) for part in a["shape"].split("/"))
    return [one("div", [left, right], [left])]


def long_attention(x: list[Operand], a: dict[str, Any], k: str) -> list[Call]:
    length, width = map(int, re.findall(r"=(\d+)", a["shape"]))
    item = Operand(a["dtype"], (1, 1, length, width))
    return [one("scaled_dot_product_attention", [item] * 3, [item])]


MAKERS: dict[str, Make] = {
    "mish": like("mish"), "sigmoid": like("sigmoid"), "gelu": gelu, "exp": exp,
    "foreach_norm": foreach_norm, "swi_glu": swi_glu, "foreach_addcdiv_scalar": addcdiv,
    "masked_scale": masked_scale, "group_norm": group_norm, "unsorted_segment_sum": segment_sum,
    "cross_entropy_loss": cross_entropy, "softmax": softmax, "apply_rotary_pos_emb": rotary,
    "gcd": like("gcd"), "arg_max": arg_max, "dynamic_quant": dynamic_quant,
    "maximum": like("maximum"), "rms_norm": like("rms_norm"), "resize_bilinear": resize,
    "apply_adam_w": adam, "scatter": scatter, "moe_gating_top_k_softmax": gating,
    "adaptive_avg_pool_3d": pool, "quant_matmul": matmul("quant_matmul"),
    "weight_quant_batch_matmul": matmul("weight_quant_matmul"),
    "dequant_swiglu_quant": dequant_swiglu, "grouped_matmul": grouped,
    "depthwise_conv_2d": conv, "conv_2d": conv, "conv_3d_backprop_filter": conv_filter,
    "transpose": transpose, "roi_align": roi_align, "moe_re_routing": routed,
    "moe_finalize_routing": finalized, "add_rms_norm_dynamic_quant": add_rms_norm,
    "mla_prolog": mla_prolog, "grouped_matmul_swiglu_quant": grouped_swiglu,
    "mla": attention, "mha": attention, "gqa": attention, "torch_npu flash_attention": attention,
    "sparse_flash_attention": sparse_attention, "torch_npu gemm": matmul("matmul"),
    "torch_npu Add": library_add, "torch_npu RealDiv": library_div,
    "torch_npu fused attention": long_attention,
}  # fmt: skip


# --- KernelBench ---------------------------------------------------------------------------------


def problem_calls(path: Path) -> list[Call]:
    """The calls of one problem's forward, from an export on tensors without values."""
    spec = importlib.util.spec_from_file_location("problem", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        model = module.Model(*module.get_init_inputs())  # in training mode, as it was measured
        inputs = module.get_inputs()
        program = torch.export.export(model, tuple(inputs), strict=False)
    return list(graph_calls(eager_graph(program)))


def eager_graph(program: Any) -> Graph:
    nodes = {node.name: node for node in program.graph_module.graph.nodes}
    inputs = []
    for item in program.graph_signature.input_specs:
        value = nodes[item.arg.name].meta.get("val")
        if isinstance(value, torch.Tensor):
            kind = DType(str(value.dtype).removeprefix("torch."))
            inputs.append(
                GraphInput(name=item.arg.name, shape=tuple(value.shape), dtype=kind, kind="user")
            )
    return Graph(inputs=tuple(inputs), nodes=(), outputs=(), eager=eager_nodes(program, ""))


if __name__ == "__main__":
    main(sys.argv[1:])
