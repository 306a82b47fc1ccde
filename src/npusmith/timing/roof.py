"""The roof of a task: the least time that any kernel for its captured graph could take on a chip.

From the graph alone. Memory: every input that is read is read once, every output is written once,
intermediate tensors never leave the cores. Arithmetic: each core ATen node by its unit, with the
fewest instructions that we know to compute it. A fused kernel can reach this; none can pass it
with the same arithmetic.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, Node, Ref, TensorSpec


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Of one vector core and cycle, while L2 holds the data. Derived: 5.96 TB/s of 910B1 with all cores
# (data_copy example of asc-devkit, scenarios 5 and 6) over 48 cores at 1850 MHz.
L2_BYTES_PER_CYCLE = 67.1
# cann-bench's hardware time moves reads and writes apart, at this rate each. Derived: the rooflines
# that it publishes for 910B2 (sigmoid of 8192 x 8192 fp16: 69.91 us for 134 MB each way).
BENCH_BYTES_PER_US = 1.92e6
# The timing model's median error on kernels that it was not fitted to is 13.5 % (docs/status.md).
MODEL_ERROR = 0.15
BENCH_LEAST_US = 1.0  # the smallest roofline in its tables

# Vector cycles for 256 B of operand; where documents give two figures, the smaller one. Composite
# functions are the shortest sequence of instructions that computes them.
_CYCLES = {
    "exp": 2, "exp2": 3, "log": 2, "log2": 3, "log1p": 3, "log10": 3, "sqrt": 2, "rsqrt": 1,
    "reciprocal": 1, "div": 2, "sigmoid": 5, "tanh": 7, "gelu": 8, "erf": 12, "sin": 10, "cos": 10,
    "tan": 12, "pow": 5, "expm1": 3, "silu": 6, "elu": 5, "softplus": 6, "leaky_relu": 1,
    "addcmul": 2, "addcdiv": 4, "remainder": 4, "fmod": 4, "hardsigmoid": 4, "hardswish": 5,
    "atan": 12, "clamp": 2, "hardtanh": 2, "_softmax": 6, "_log_softmax": 6, "cumsum": 1,
    "native_layer_norm": 6, "native_group_norm": 6, "_native_batch_norm_legit_no_training": 3,
    "var": 4, "var_mean": 4,
}  # fmt: skip
# Bookkeeping: nothing that a kernel would have to compute.
_NOTHING = _names(
    """view reshape _unsafe_view permute transpose t expand unsqueeze squeeze slice select alias
    detach clone getitem split split_with_sizes unbind diagonal as_strided cat stack full
    full_like scalar_tensor empty empty_like zeros ones zeros_like ones_like arange index
    index_select gather embedding constant_pad_nd repeat flip roll lift_fresh_copy unfold
    """
)
_PARTS = frozenset({"slice", "select", "index_select", "gather", "index", "embedding"})
_SUMS = _names(
    """sum mean amax amin max min prod argmax argmin any all var var_mean linalg_vector_norm
    _softmax _log_softmax cumsum cumprod native_layer_norm native_group_norm"""
)
_MATMUL = frozenset({"mm", "bmm", "_int_mm", "addmm", "baddbmm", "mv", "dot"})
_CUBE_KINDS = {"float16": 1.0, "bfloat16": 1.0, "int8": 2.0, "float32": 0.25}


@dataclass(frozen=True, slots=True)
class Roof:
    """What no kernel for the task can beat on this chip. Times in microseconds."""

    gm_bytes: int
    vector_ops: dict[str, float]  # element operations by type
    cube_flops: dict[str, float]  # two a multiply-add, by operand type
    memory_us: float  # all bytes at the rate of device memory
    memory_l2_us: float  # what fits L2 is there already
    compute_us: float  # vector and cube work at the same time
    bound_us: float  # the larger of memory_us and compute_us
    hardware_us: float  # T_h as in cann-bench: max of cube, vector, reads, writes
    notes: list[str] = field(default_factory=list)


def roof(graph: Graph, chip: Chip) -> Roof:
    """The roof of `graph` on `chip`."""
    return _Count(graph, chip).roof()


def beaten(roof: Roof, kernel_us: float) -> str:
    """By what a time is too good to be true, in words; empty for one within the model's error.

    What fits L2 may lie there already.
    """
    bounds = {"memory": roof.memory_l2_us, "arithmetic": roof.compute_us}
    name, least = max(bounds.items(), key=lambda item: item[1])
    if kernel_us <= 0 or kernel_us >= least * (1 - MODEL_ERROR):
        return ""
    return f"{kernel_us:.2f} us, the least for the task's {name} is {least:.2f} us"


class _Count:
    """Adds up one graph."""

    def __init__(self, graph: Graph, chip: Chip) -> None:
        self.graph, self.chip = graph, chip
        self.specs: dict[str, TensorSpec] = {item.name: item for item in graph.inputs}
        for node in graph.nodes:
            if node.dtype:
                spec = TensorSpec(name=node.name, shape=node.shape, dtype=node.dtype)
                self.specs[node.name] = spec
        self.vector_ops: defaultdict[str, float] = defaultdict(float)
        self.cube_flops: defaultdict[str, float] = defaultdict(float)
        self.cycles = 0.0  # of all vector cores together
        self.notes: list[str] = []

    def roof(self) -> Roof:
        for node in self._needed():
            self._count(node)
        reads, writes = self._reads(), self._writes()
        vector_us = self.cycles / (self.chip.vector_cores * self.chip.clock_mhz)
        cube_us = self._cube_us()
        compute = max(vector_us, cube_us)
        memory = (reads + writes) / self._hbm()
        return Roof(
            gm_bytes=reads + writes,
            vector_ops=dict(sorted(self.vector_ops.items())),
            cube_flops=dict(sorted(self.cube_flops.items())),
            memory_us=memory,
            memory_l2_us=self._warm_us(reads + writes),
            compute_us=compute,
            bound_us=max(memory, compute),
            hardware_us=max(compute, self._bench_us(reads, writes)),
            notes=self.notes,
        )

    # --- bytes -----------------------------------------------------------------------------------

    def _hbm(self) -> float:
        return self.chip.hbm_gbps * 1e3  # bytes a microsecond

    def _warm_us(self, count: int) -> float:
        chip = self.chip
        rate = L2_BYTES_PER_CYCLE * chip.vector_cores * chip.clock_mhz
        inside = min(count, chip.l2_bytes)
        return inside / max(rate, self._hbm()) + (count - inside) / self._hbm()

    def _bench_us(self, reads: int, writes: int) -> float:
        rate = BENCH_BYTES_PER_US * self.chip.hbm_gbps / _BENCH_HBM_GBPS
        return max(BENCH_LEAST_US, reads / rate, writes / rate)

    def _reads(self) -> int:
        return sum(self._read_bytes(item.name) for item in self.graph.inputs)

    def _read_bytes(self, name: str) -> int:
        """All of it; where every reader takes a part, the parts."""
        spec = self.specs[name]
        users = [node for node in self._needed() if name in _refs(node)]
        kept = name in self.graph.outputs
        if not users and not kept:
            return 0
        if kept or any(_op(node) not in _PARTS for node in users):
            return _bytes(spec)
        if any(_refs(node)[0] != name for node in users):  # the indices themselves
            return _bytes(spec)
        parts = sum(_bytes(self.specs[node.name]) for node in users if node.name in self.specs)
        return min(_bytes(spec), parts)

    def _writes(self) -> int:
        return sum(_bytes(self.specs[name]) for name in dict.fromkeys(self.graph.outputs))

    # --- arithmetic ------------------------------------------------------------------------------

    def _needed(self) -> list[Node]:
        """The nodes that an output depends on."""
        wanted = set(self.graph.outputs)
        needed = []
        for node in reversed(self.graph.nodes):
            if node.name in wanted:
                wanted.update(_refs(node))
                needed.append(node)
        return needed[::-1]

    def _count(self, node: Node) -> None:
        op = _op(node)
        if op in _NOTHING:
            return
        if op in _MATMUL:
            self._matmul(node, op)
        elif op == "convolution":
            self._convolution(node)
        elif "scaled_dot_product" in op:
            self._attention(node)
        elif op.startswith(("avg_pool", "max_pool")):
            self._vector(node, op, self._pooled(node))
        else:
            self._vector(node, op, self._size(node, op))

    def _size(self, node: Node, op: str) -> int:
        sizes = [self.specs[name].size for name in _refs(node) if name in self.specs]
        out = self.specs[node.name].size if node.name in self.specs else 0
        return max([*sizes, out]) if op in _SUMS else max(out, 0 if out else max(sizes, default=0))

    def _vector(self, node: Node, op: str, size: int) -> None:
        """`size` element operations; bfloat16 is computed in fp32, bytes in 16 bits."""
        sources = [self.specs[name] for name in _refs(node) if name in self.specs]
        kind = (sources[0] if sources else self.specs[node.name]).dtype
        width = {DType.BFLOAT16: 4, DType.INT8: 2, DType.UINT8: 2, DType.BOOL: 2}.get(
            kind, kind.bytes
        )
        steps = _CYCLES.get(op, 1)
        if width == 2 and op in ("exp", "log", "sqrt", "div"):
            steps *= 2  # the same elements a cycle as in fp32
        self.vector_ops[kind.value] += float(size)
        self.cycles += steps * size * width / self.chip.repeat_bytes

    def _pooled(self, node: Node) -> int:
        """Elements that a pooling reads: its outputs times the window."""
        window = node.args[1] if len(node.args) > 1 else ()
        sizes = (
            [item for item in window if isinstance(item, int)] if isinstance(window, tuple) else []
        )
        out = math.prod(node.shape) or self._size(node, "pool")
        return out * math.prod(sizes)

    def _matmul(self, node: Node, op: str) -> None:
        operands = [self.specs[name] for name in _refs(node) if name in self.specs]
        left = operands[1] if op in ("addmm", "baddbmm") else operands[0]
        depth = left.shape[-1] if left.shape else 1
        self.cube_flops[left.dtype.value] += 2.0 * math.prod(node.shape) * depth
        if op in ("addmm", "baddbmm"):
            self._vector(node, "add", math.prod(node.shape))

    def _convolution(self, node: Node) -> None:
        image, weight = (self.specs[name] for name in _refs(node)[:2])
        transposed = node.args[6] is True
        outside = math.prod(image.shape) if transposed else math.prod(node.shape)
        each = math.prod(weight.shape[1:])
        self.cube_flops[image.dtype.value] += 2.0 * outside * each

    def _attention(self, node: Node) -> None:
        """Two products over all pairs, and a softmax of the pairs; a mask is not looked at."""
        query, key, value = (self.specs[name] for name in _refs(node)[:3])
        pairs = query.size // query.shape[-1] * key.shape[-2]
        width = query.shape[-1] + value.shape[-1]
        self.cube_flops[query.dtype.value] += 2.0 * pairs * width
        self._vector(node, "_softmax", pairs)

    def _cube_us(self) -> float:
        """16 x 16 x 16 products a core and cycle of 16-bit operands, twice that of int8."""
        peak = self.chip.cube_cores * self.chip.clock_mhz * 2.0 * 16**3
        total = 0.0
        for kind, flops in self.cube_flops.items():
            if kind not in _CUBE_KINDS:
                self.notes.append(f"the cube does not multiply {kind}: counted as fp32")
            total += flops / (peak * _CUBE_KINDS.get(kind, 0.25))
        return total


_BENCH_HBM_GBPS = 1510  # of 910B2, the chip that the published rooflines are for


def _bytes(spec: TensorSpec) -> int:
    return spec.size * spec.dtype.bytes


def _op(node: Node) -> str:
    return node.op.split(".")[1]


def _refs(node: Node) -> list[str]:
    found: list[str] = []
    for item in (*node.args, *node.kwargs.values()):
        parts = item if isinstance(item, tuple) else (item,)
        found += [part.ref for part in parts if isinstance(part, Ref)]
    return found
