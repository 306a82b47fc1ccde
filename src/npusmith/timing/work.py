"""How much work one eager call is, and the formula that turns it into time.

    time = start + skew * max(drag * bytes, tick * elements, products / (share of the cube's peak))
           + row * rows

in microseconds. `start` is launch and tail of the call's kernels; `drag` is how many times the
bytes of one read and one write of each operand must move; `tick` is the vector unit's time for a
million elements; `row` is a cost for a thousand rows (of a softmax), tasks (of an attention);
`skew` counts only where rows do not start at a multiple of 32 B, and is 1 elsewhere.
runs/eager.py fits the six numbers for each family of operations and for each operation measured
often enough; they live in target/measured/eager_fit.json.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from npusmith.timing.calls import Call, Operand

PARAMETERS = ("start", "drag", "tick", "row", "share", "skew")
Constants = dict[str, float]

_FAMILIES = {
    "map": """abs add addcdiv addcmul and bitwise_and bitwise_not bitwise_or ceil clamp cos div elu
        eq erf exp exp2 expm1 fill floor foreach_addcdiv gcd ge gelu gt hardsigmoid hardswish
        hardtanh isfinite isinf isnan le leaky_relu lerp log log1p log2 logical_and logical_not
        logical_or logit lt masked_fill maximum minimum mish mul ne neg pow prelu reciprocal relu
        relu6 remainder round rsqrt selu sigmoid sign silu sin softplus softshrink softsign sqrt
        square sub tan tanh threshold to trunc where xor log_sigmoid celu hardshrink erfc
        floor_divide exp_fused apply_adam_w""",
    "move": """cat copy diag flip full full_like ones ones_like pad repeat roll stack
        tril triu zeros zeros_like arange constant_pad_nd repeat_interleave reflection_pad2d
        replication_pad2d upsample_nearest2d pixel_shuffle new_zeros new_ones""",
    "turn": "permute_copy",
    "pick": "argmax argmin max min",
    "reduce": """all amax amin any cosine_similarity foreach_norm linalg_vector_norm logsumexp
        mean norm_power prod std sum var var_mean adaptive_avg_pool1d adaptive_avg_pool2d
        adaptive_avg_pool3d""",
    "norm": """add_rms_norm_dynamic_quant apply_rotary apply_rotary_interleaved batch_norm
        cross_entropy_loss dequant_swiglu_quant dynamic_quant glu group_norm instance_norm
        layer_norm log_softmax normalize rms_norm softmax swiglu""",
    "loss": """binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss
        cross_entropy hinge_embedding_loss huber_loss kl_div l1_loss
        margin_ranking_loss mse_loss nll_loss nll_loss_nd smooth_l1_loss soft_margin_loss
        triplet_margin_loss""",
    "scan": "cummax cummin cumprod cumsum logcumsumexp",
    "cube": """addmm baddbmm einsum grouped_matmul grouped_matmul_swiglu_quant linear matmul
        mla_prolog quant_matmul weight_quant_matmul mv dot""",
    "conv": """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
        conv3d_backprop_filter convolution""",
    "attention": "scaled_dot_product_attention sparse_attention",
    "pool": """avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d
        max_pool2d_with_indices adaptive_max_pool2d roi_align upsample_bilinear2d""",
    "index": """embedding gather index index_add index_add_sorted index_put index_select
        masked_select moe_finalize_routing moe_gating_topk_softmax moe_re_routing one_hot scatter
        scatter_add scatter_reduce sort topk take take_along_dim""",
}  # fmt: skip
FAMILY = {op: family for family, words in _FAMILIES.items() for op in words.split()}
OTHER = "other"  # an operation that nothing is known of
_ROWS = ("layer_norm", "rms_norm", "softmax", "log_softmax")
_UB_BYTES = 192 * 1024
_HALVES = ("swiglu", "glu")  # elementwise on two halves of a row
_WIDE = frozenset({"int64", "float64", "complex64"})
_BYTE = frozenset({"int8", "uint8", "bool"})


@dataclass(frozen=True, slots=True)
class Work:
    """What one call needs. `key` names its constants, `family` those it falls back to."""

    key: str
    family: str
    bytes: float
    elements: float  # millions
    rows: float  # thousands
    products: float  # 10^6 products, padded to what the cube multiplies at once
    kind: str  # the cube's operand type
    skewed: bool = False  # rows that do not start at a multiple of 32 B


@dataclass(frozen=True, slots=True)
class Rates:
    """What the chip moves and multiplies. The first three are fitted, for 910B2."""

    warm: float  # bytes a microsecond while a call's operands fit L2
    cold: float  # beyond
    window: float  # bytes of them that L2 serves
    peak: float  # 16-bit products a microsecond, in millions

    def move_us(self, count: float) -> float:
        return min(count, self.window) / self.warm + max(0.0, count - self.window) / self.cold


def work_of(call: Call) -> Work:
    """The features of one call."""
    family = FAMILY.get(call.op, OTHER)
    tensors = (*call.inputs, *call.outputs)
    length, inner = _axis(call)
    largest = max((item.size for item in tensors), default=0)
    moved = float(sum(item.bytes for item in tensors))
    elements, rows, products = float(largest), largest / max(1, length), 0.0
    if call.op in ("group_norm", "instance_norm"):
        moved, elements = moved * _uneven(rows), elements * _uneven(rows)
    if call.op in _HALVES:
        rows = largest / (max(1, length) * max(1, inner))
    if family == "cube":
        products, rows = _matmul_products(call), 0.0
    elif family == "conv" and _is_depthwise(call):
        rows, elements = 0.0, float(call.outputs[0].size * math.prod(call.inputs[1].shape[1:]))
    elif family == "conv":
        rows = 0.0
        products, moved = _conv_products(call), moved + 2.0 * _padded_bytes(call)
    elif family == "attention":
        products, rows, elements = _attention(call)
    elif family == "pool":
        elements = _windows(call)
    elif family not in ("norm", "reduce", "pick", "scan", "loss", "index"):
        rows = 0.0
    kind = call.inputs[0].dtype if call.inputs else "float32"
    by_rows = family in ("cube", "norm", "reduce", "pick") or _repeats_columns(call)
    skewed = by_rows and _is_skewed(call)
    return Work(
        _key(call, inner), family, moved, elements / 1e6, rows / 1e3, products / 1e6, kind, skewed
    )


def time_us(work: Work, constants: Constants, rates: Rates) -> float:
    """The formula of this file."""
    moved = constants["drag"] * rates.move_us(work.bytes)
    peak = rates.peak * _speed(work.kind) * constants["share"]
    busy = max(moved, constants["tick"] * work.elements, work.products / peak)
    skew = constants["skew"] if work.skewed else 1.0
    return constants["start"] + skew * busy + constants["row"] * work.rows


def _speed(kind: str) -> float:
    """Of the cube, against 16-bit operands."""
    return {"int8": 2.0, "uint8": 2.0, "float32": 0.25}.get(kind, 1.0)


def _key(call: Call, inner: int) -> str:
    """Constants are shared by the calls that take the same kernel, as far as the name tells."""
    parts = [call.op]
    first = call.inputs[0] if call.inputs else Operand("float32", ())
    if (
        FAMILY.get(call.op) in ("reduce", "pick", "norm", "scan")
        and inner > 1
        and call.op not in _HALVES
    ):
        parts.append("inner")
    if call.op in _ROWS and _axis(call)[0] * 4 > _UB_BYTES:
        parts.append("long")  # a row does not fit a core: it is read again for every pass
    if FAMILY.get(call.op) == "map":
        parts += ["wide"] if first.dtype in _WIDE else []
        parts += ["byte"] if first.dtype in _BYTE else []  # computed in 16 bits
        parts += ["spread"] if _repeats_columns(call) else []
    if call.op == "cross_entropy_loss" and call.inputs[0].shape[-1] < 64:
        parts.append("narrow")
    if call.op == "gelu" and call.attr("approximate"):
        parts.append(call.attr("approximate"))
    if FAMILY.get(call.op) == "attention" and first.shape[-2] <= 16:
        parts.append("decode")
    if FAMILY.get(call.op) == "conv" and call.attr("groups"):
        parts.append("grouped")
    if call.op == "batch_norm" and call.attr("training"):
        parts.append("training")
    return ":".join(parts)


_CORES = 48  # of the chip the constants were fitted on


def _uneven(groups: float) -> float:
    """Time over that of evenly loaded cores, where each core takes whole groups.

    At most 2: where there are far fewer groups than cores, the kernels split them.
    """
    return min(2.0, math.ceil(groups / _CORES) * _CORES / max(1.0, groups))


def _is_skewed(call: Call) -> bool:
    """A tensor of several rows whose row is not whole 32 B blocks."""
    big = (item for item in (*call.inputs, *call.outputs) if len(item.shape) > 1)
    return any(
        item.bytes // max(1, item.size) * item.shape[-1] % 32 for item in big if item.size > 65536
    )


def _is_depthwise(call: Call) -> bool:
    return "transpose" not in call.op and call.attr("groups") != "" and call.inputs[1].shape[1] == 1


def _repeats_columns(call: Call) -> bool:
    """An operand is repeated along the last axis: the kernel must fan out single elements."""
    last = call.outputs[0].shape[-1:] if call.outputs else ()
    return any(
        item.shape and item.size > 1 and last and item.shape[-1] == 1 < last[0]
        for item in call.inputs
    )


def _axis(call: Call) -> tuple[int, int]:
    """Length of the axes that are reduced, and the elements behind them."""
    shape = call.inputs[0].shape if call.inputs else ()
    if call.op in ("layer_norm", "rms_norm", "dynamic_quant", "add_rms_norm_dynamic_quant"):
        weights = [item for item in call.inputs[1:] if len(item.shape) and item.shape != shape]
        return (weights[0].size if weights else shape[-1] if shape else 1), 1
    if call.op in ("group_norm", "instance_norm", "batch_norm"):
        groups = int(call.attr("groups", "0")) or (shape[1] if len(shape) > 1 else 1)
        return max(1, math.prod(shape) // max(1, shape[0] * groups)), 1
    text = call.attr("dim")
    if text.replace(",", "").isdigit():
        axes = [int(word) for word in text.split(",")]
        return math.prod(shape[axis] for axis in axes), math.prod(shape[axes[-1] + 1 :])
    if FAMILY.get(call.op) in ("reduce", "pick", "loss") and call.outputs:
        return max(1, math.prod(shape) // max(1, call.outputs[0].size)), 1
    return (shape[-1] if shape else 1), 1


def _up(count: int, step: int) -> int:
    return -(-count // step) * step


def _matmul_products(call: Call) -> float:
    """Rows x columns x depth, each padded to the cube's 16."""
    if len(call.inputs) < 2:
        return 0.0
    if call.op == "mla_prolog":  # a chain of products: every weight once a token
        tokens = math.prod(call.inputs[0].shape[:-1])
        return float(_up(tokens, 16) * sum(item.size for item in call.inputs[1:5]))
    out, depth = call.outputs[0], _depth(call)
    rows = out.shape[-2] if len(out.shape) > 1 else 1
    columns = out.shape[-1] if out.shape else 1
    batch = out.size // max(1, rows * columns)
    if call.op == "grouped_matmul_swiglu_quant":
        columns *= 2
    return float(batch * _up(rows, 16) * _up(columns, 16) * _up(depth, 16))


def _depth(call: Call) -> int:
    operands = [item for item in call.inputs if len(item.shape) > 1] or list(call.inputs)
    return operands[0].shape[-1] if operands[0].shape else 1


def _conv_products(call: Call) -> float:
    """Outputs x window x input channels; channels are padded to a 32 B block."""
    image, weight = call.inputs[:2]
    if call.op == "conv3d_backprop_filter":
        grad = weight
        return float(grad.size * _up(image.shape[1], 16) * math.prod(call.outputs[0].shape[2:]))
    window = math.prod(weight.shape[2:])
    if "transpose" in call.op:  # each input goes to a window of outputs
        return float(image.size // image.shape[1] * _up(image.shape[1], 16) * window
                     * _up(weight.shape[1], 16))  # fmt: skip
    return float(call.outputs[0].size * _up(weight.shape[1], 16) * window)


def _padded_bytes(call: Call) -> float:
    """Input and output in the cube's five-axis layout: what the conversions move."""
    total = 0.0
    for item in (call.inputs[0], *call.outputs):
        if len(item.shape) > 1:
            total += item.bytes / item.shape[1] * _up(item.shape[1], 16)
    return total


def _attention(call: Call) -> tuple[float, float, float]:
    """Products, tasks (a key head with 128 queries of it) and elements of the softmax."""
    query, key, value = call.inputs[:3]
    batch, heads, length, width = (1, 1, *query.shape)[-4:]
    keys, key_heads = key.shape[-2], (1, *key.shape)[-3]
    if call.op == "sparse_attention" and len(call.inputs) > 3:
        keys = min(keys, call.inputs[3].shape[-1])
    grouped = length * max(1, heads // key_heads)
    padded = batch * key_heads * _up(grouped, 16)
    products = float(padded * keys * (width + value.shape[-1]))
    tasks = batch * key_heads * _up(grouped, 128) / 128
    return products, tasks, float(padded * keys)


def _windows(call: Call) -> float:
    """Elements that a pooling reads: outputs times the window."""
    out, first = call.outputs[0], call.inputs[0]
    text = call.attr("kernel", "1")
    sizes = [int(word) for word in text.split(",") if word.isdigit()]
    axes = max(1, len(first.shape) - 2)
    window = math.prod(sizes * axes if len(sizes) == 1 else sizes)
    return float(max(out.size * window, first.size))
