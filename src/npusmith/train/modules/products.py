"""Rows of products for random modules: matrices, convolutions and attention, in all their forms."""

from __future__ import annotations

from collections.abc import Callable

import torch

from npusmith.train.modules.draw import Op, Refused, Rule, State

Write = Callable[[State], str]


def _operand(g: State, v: str, shape: tuple[int, ...]) -> str:
    """A tensor of that shape and the type of `v`: a parameter, or an input."""
    dtype = g.values[v].dtype
    if g.of(True, False):
        return g.parameter(shape, dtype)
    return g.input(shape, g.draw_of(dtype))


def _side(g: State) -> int:
    return int(g.of(1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 32, 33, 40))


def linear(g: State) -> str:
    v = g.float(1)
    width = _side(g)
    weight = _operand(g, v, (width, g.size(v, -1)))
    bias = f", {_operand(g, v, (width,))}" if g.of(True, False) else ""
    return f"F.linear({v}, {weight}{bias})"


def matmul(g: State) -> str:
    v = g.float(2)
    deep, batch = g.size(v, -1), tuple(g.values[v].shape[:-2])
    batch = batch[g.between(0, len(batch)) :]
    batch = tuple(1 if g.of(True, False, False, False) else size for size in batch)
    width = _side(g)
    form = g.of("plain", "plain", "transposed", "left", "vector", "scaled")
    if form == "plain":
        return f"{v} @ {_operand(g, v, (*batch, deep, width))}"
    if form == "transposed":
        return f"{v} @ {_operand(g, v, (*batch, width, deep))}.transpose(-1, -2)"
    if form == "left":
        rows = g.size(v, -2)
        return f"{v}.transpose(-1, -2) @ {_operand(g, v, (*batch, rows, width))}"
    if form == "vector":
        return f"{v} @ {_operand(g, v, (deep,))}"
    return f"({v} * 0.25) @ ({_operand(g, v, (*batch, deep, width))} - 0.5)"


def with_itself(g: State) -> str:
    v = g.float(2)
    form = g.of("{v} @ {v}.transpose(-1, -2)", "{v}.mT @ {v}", "{v} @ {v}.mT.tril()")
    return str(form).format(v=v)


def summed(g: State) -> str:
    """einsum over one axis or two."""
    v = g.float(2)
    rank = g.rank(v)
    names = "bcdefg"[:rank]
    shared = names[-1] if g.of(True, False) else names[-2:]
    width = _side(g)
    sizes = tuple(g.size(v, names.index(axis)) for axis in shared)
    w = _operand(g, v, (*sizes, width)) if g.of(True, False) else None
    kept = "".join(axis for axis in names if axis not in shared)
    if w is not None:
        return f"torch.einsum('{names},{shared}z->{kept}z', {v}, {w})"
    return f"torch.einsum('{names},z{shared}->z{kept}', {v}, {_operand(g, v, (width, *sizes))})"


def added(g: State) -> str:
    v = g.pick(lambda x: x.is_floating_point() and x.dim() == 2)
    rows, deep = g.values[v].shape
    width = _side(g)
    w = _operand(g, v, (deep, width))
    base = _operand(g, v, g.of((rows, width), (width,), (rows, 1)))
    return f"torch.addmm({base}, {v}, {w}{g.of('', ', beta=0.5, alpha=2.0')})"


def batched(g: State) -> str:
    v = g.pick(lambda x: x.is_floating_point() and x.dim() == 3)
    batch, rows, deep = g.values[v].shape
    width = _side(g)
    w = _operand(g, v, (batch, deep, width))
    if g.of(True, False):
        return f"torch.bmm({v}, {w})"
    return f"torch.baddbmm({_operand(g, v, (batch, rows, width))}, {v}, {w})"


def lone(g: State) -> str:
    """Vectors: outer products, dot products, a matrix by a vector."""
    v = g.pick(lambda x: x.is_floating_point() and x.dim() == 1)
    (length,) = g.values[v].shape
    if g.of(True, False):
        return f"torch.outer({v}, {_operand(g, v, (_side(g),))})"
    if g.of(True, False):
        return f"torch.dot({v}, {_operand(g, v, (length,))})"
    return f"torch.mv({_operand(g, v, (_side(g), length))}, {v})"


def convolved(g: State) -> str:
    """One to three dimensions: stride, padding, dilation, groups."""
    v = g.pick(lambda x: x.is_floating_point() and x.dim() in (3, 4, 5))
    dims = g.rank(v) - 2
    channels = g.size(v, 1)
    groups = g.of(1, 1, channels, *[n for n in range(1, channels + 1) if channels % n == 0])
    kernel = tuple(g.between(1, min(4, max(g.size(v, 2 + i), 1))) for i in range(dims))
    filters = groups * g.of(1, 1, 2, 3, 5)
    weight = _operand(g, v, (filters, channels // groups, *kernel))
    bias = _operand(g, v, (filters,)) if g.of(True, False) else "None"
    dilation = tuple(g.of(1, 1, 2) for _ in kernel)
    if dims == 3 and g.values[v].dtype == torch.float16:
        dilation = (1, 1, 1)  # torch 2.13 reads beside the padded input there, and can crash
    if g.of(False, False, False, True):
        rest = f"padding='same', dilation={dilation}"
    else:
        stride = tuple(g.of(1, 1, 2, 3) for _ in kernel)
        padding = tuple(g.between(0, 2) for _ in kernel)
        rest = f"stride={stride}, padding={padding}, dilation={dilation}"
    return f"F.conv{dims}d({v}, {weight}, {bias}, {rest}, groups={groups})"


def transposed(g: State) -> str:
    v = g.pick(lambda x: x.is_floating_point() and x.dim() in (3, 4))
    dims = g.rank(v) - 2
    channels = g.size(v, 1)
    groups = g.of(1, 1, *[n for n in range(1, channels + 1) if channels % n == 0])
    kernel = tuple(g.between(1, 4) for _ in range(dims))
    filters = g.of(1, 2, 3)
    weight = _operand(g, v, (channels, filters, *kernel))
    bias = _operand(g, v, (filters * groups,)) if g.of(True, False) else "None"
    stride = tuple(g.of(1, 2, 3) for _ in kernel)
    padding = tuple(g.between(0, 1) for _ in kernel)
    more = tuple(g.between(0, step - 1) for step in stride)
    dilation = tuple(g.of(1, 1, 2) for _ in kernel)
    return (
        f"F.conv_transpose{dims}d({v}, {weight}, {bias}, stride={stride}, padding={padding}, "
        f"output_padding={more}, groups={groups}, dilation={dilation})"
    )


def whole(g: State) -> str:
    """int8 by int8 in int32: a variable, or what a row of small numbers is rounded to."""
    v = g.pick(lambda x: x.dim() == 2 and x.dtype in (torch.int8, torch.float32))
    left = v if g.values[v].dtype == torch.int8 else f"{v}.clamp(-100, 100).to(torch.int8)"
    shape = (g.size(v, 1), _side(g))
    turned = g.of(True, False)
    other = g.input(shape[::-1] if turned else shape, g.draw_of(torch.int8))
    return f"torch._int_mm({left}, {other}{'.t()' if turned else ''})"


def attention(g: State) -> str:
    """One query for each row: masks, causal rows, other lengths, grouped heads."""
    v = g.float(3)
    if g.rank(v) > 4 or not g.values[v].numel():
        raise Refused
    *batch, length, head = g.values[v].shape
    causal = g.of(True, False, False)
    other = length if causal else _side(g)
    keys = _operand(g, v, (*batch, other, head))
    values = keys if g.of(True, False, False) else _operand(g, v, (*batch, other, head))
    rest = ", is_causal=True" if causal else ""
    if not causal and g.of(True, False):
        rest = f", attn_mask={_operand(g, v, (length, other))}"
    return f"F.scaled_dot_product_attention({v}, {keys}, {values}{rest})"


def scores(g: State) -> str:
    """Attention written out, with what nobody has a name for around it."""
    v = g.float(3)
    *batch, _, head = g.values[v].shape
    keys = _operand(g, v, (*batch, _side(g), head))
    form = g.of("softmax(-1)", "softmax(-1)", "tanh()", "amax(-1)", "relu().sum(-2)")
    return f"({v} @ {keys}.transpose(-1, -2) * 0.25).{form}"


WRITERS: tuple[Write, ...] = (
    linear, linear, matmul, matmul, matmul, with_itself, summed, summed, added, batched, lone,
    convolved, convolved, transposed, attention, scores,
)  # fmt: skip
PRODUCTS = [
    *(Op("products", Rule.ROUNDS, write) for write in WRITERS),
    Op("products", Rule.SHARP, whole),
]
