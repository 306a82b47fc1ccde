"""Two matrix products with a softmax between -> one operation, which one kernel computes.

before: `s = bmm(q * a, k * b)`, `w = softmax(s / c + mask)`, `y = bmm(w, v)`
after:  `y = attention(q, k, v, mask)` with `scale=a * b / c`

Scores and weights are then nobody else's. Weights that the model has in float32 are two numbers of
16 bits each where values have 16 bits. Casts to float32 fall away: the cube unit multiplies 16
bits exactly and adds up in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, prod

from npusmith.ir.dtypes import DType
from npusmith.plan.estimate import LAUNCH, WAIT, hbm_us
from npusmith.plan.node_kinds import ATTENTION, CUBE_PRODUCT, PRODUCTS, SHORT_FLOATS
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, Node, Ref, SymbolicSize, is_free, references

_FLOATS = (DType.FLOAT32, *SHORT_FLOATS)
_CLONE = "aten.clone.default"
_CAST = "aten._to_copy.default"
_SCALED = {"aten.mul.Scalar": 1, "aten.mul.Tensor": 1, "aten.div.Tensor": -1, "aten.div.Scalar": -1}
_BATCHED = "aten.bmm.default", CUBE_PRODUCT


def with_attention(graph: Graph) -> Graph:
    """The graph with each attention as one operation."""
    for node in graph.nodes:
        if node.op in _BATCHED and (found := _Matcher(graph).match(node)) is not None:
            graph = found
    return graph


def us_apart(graph: Graph, chip: Chip) -> float:
    """Microseconds, at least, of the kernels that would do a graph's attention one by one.

    Scores and weights in float32 pass through global memory once each way.
    """
    us = 0.0
    for node in graph.nodes:
        if node.op == ATTENTION:
            query, key = (graph.spec(_ref(node, at)).shape for at in (0, 1))
            scores = prod(query[:-1]) * key[-1] * DType.FLOAT32.bytes
            us += LAUNCH + 4 * hbm_us(scores, chip) + 2 * WAIT
    return us


class _NoMatch(Exception):
    pass


@dataclass(slots=True)
class _Matcher:
    graph: Graph
    nodes: dict[str, Node] = field(init=False)
    readers: dict[str, set[str]] = field(init=False)
    inside: set[str] = field(default_factory=set)  # what nobody else may read
    added: list[Node] = field(default_factory=list)
    symbolic: list[SymbolicSize] = field(default_factory=list)
    scale: float = 1.0

    def __post_init__(self) -> None:
        self.nodes = {node.name: node for node in self.graph.nodes}
        self.readers = {}
        for node in self.graph.nodes:
            for name in references(node):
                self.readers.setdefault(name, set()).add(node.name)

    def match(self, last: Node) -> Graph | None:
        """The graph with the attention that ends in this product, if there is one."""
        try:
            return self._match(last)
        except _NoMatch:
            return None

    def _match(self, last: Node) -> Graph:
        weights, views = self._base(_ref(last, 0))
        softmax, safe = self._softmax(weights)
        scores, mask, causal = self._scores(self._made(_ref(softmax, 0)))
        if scores.op not in _BATCHED:
            raise _NoMatch
        outside = (*views, softmax.name, scores.name)
        self.inside |= set(outside)
        self._check_inside(last)
        operands = [self._operand(_ref(scores, 0), last), self._operand(_ref(scores, 1), last)]
        factors, self.scale = self.scale, 1.0
        operands.append(self._operand(_ref(last, 1), last))
        scale = factors * self.scale
        if not 0 < scale < inf or self.scale != 1:
            raise _NoMatch
        fresh = {node.name: node.dtype for node in self.added}
        types = {fresh.get(name) or self.graph.spec(name).dtype for name in operands}
        if len(types) > 1 or not types <= set(_FLOATS):
            raise _NoMatch
        args: list[Ref | None] = [Ref(ref=name) for name in operands]
        args.append(None if mask is None else Ref(ref=self._spread(mask, views, last)))
        (dtype,) = types
        made = {
            "op": ATTENTION, "args": tuple(args),
            "kwargs": {"scale": scale, "causal": causal, "safe": safe,
                       "narrow": weights.dtype in SHORT_FLOATS},
        }  # fmt: skip
        return self._replaced(last, made, dtype)

    # ---- what stands between the products

    def _softmax(self, weights: Node) -> tuple[Node, bool]:
        """The softmax, and whether rows without a key get 0 instead of NaN."""
        safe = weights.op == "aten.where.self"
        found = weights
        if safe:
            self.inside.add(weights.name)
            found = self._made(_ref(weights, 2))
            self._check_safe(weights, found)
        if found.op != "aten._softmax.default" or found.args[1] not in (-1, len(found.shape) - 1):
            raise _NoMatch
        return found, safe

    def _check_safe(self, chosen: Node, softmax: Node) -> None:
        """`where(not any(not (scores == -inf)), 0, softmax)`"""
        zeros = self._made(_ref(chosen, 1))
        steps = [self._made(_ref(chosen, 0))]
        for wanted in ("logical_not", "any", "logical_not", "eq"):
            if steps[-1].op.split(".")[1] != wanted:
                raise _NoMatch
            if wanted != "eq":
                steps.append(self._made(_ref(steps[-1], 0)))
        compared, folded = steps[-1], steps[1]
        good = compared.args[1] == -inf and _ref(compared, 0) == _ref(softmax, 0)
        good &= folded.args[1] in (-1, len(softmax.shape) - 1)
        good &= zeros.op == "aten.full_like.default" and zeros.args[1] == 0
        if not good:
            raise _NoMatch
        self.inside |= {item.name for item in (*steps, zeros)}

    def _scores(self, node: Node) -> tuple[Node, str | None, bool]:
        """The first product, the mask's name, and whether that is the causal one."""
        mask: str | None = None
        causal = False
        while node.op not in PRODUCTS:
            self.inside.add(node.name)
            if node.op == "aten.add.Tensor" and len(node.args) == 2 and mask is None:
                one, two = _ref(node, 0), _ref(node, 1)
                if self.graph.spec(one).shape != node.shape:
                    one, two = two, one
                mask, causal = self._mask(two)
                if self.scale != 1 and mask == two:
                    raise _NoMatch  # a factor behind the sum scales what is added as well
                node = self._made(one)
            elif _is_view(node):
                node = self._made(references(node)[0])
            elif self._is_scaled(node):
                self._scale(node)
                node = self._made(_ref(node, 0))
            else:
                raise _NoMatch
        return node, None if causal else mask, causal

    def _mask(self, name: str) -> tuple[str, bool]:
        """What is added, or of what is True where nothing is and -inf elsewhere, that."""
        node = self.nodes.get(name)
        if node is None or node.op != "aten.where.self":
            return name, False
        try:
            numbers = [self._number(_ref(node, at)) for at in (1, 2)]
        except _NoMatch:
            return name, False
        if numbers != [0, -inf] or self.graph.spec(_ref(node, 0)).dtype is not DType.BOOL:
            return name, False
        seen = _ref(node, 0)
        return seen, self._is_causal(seen)

    def _is_causal(self, name: str) -> bool:
        """`arange(keys) - arange(rows)[:, None] <= 0`, as PyTorch takes `is_causal` apart."""
        try:
            both = self._made(name)
            if both.op == "aten.logical_and.default":
                whole = self._made(_ref(both, 1))
                if whole.op != "aten.full.default" or whole.args[1] is not True:
                    return False
                both = self._made(_ref(both, 0))
            apart = self._made(_ref(both, 0))
            if both.op != "aten.le.Scalar" or both.args[1] != 0:
                return False
            if apart.op != "aten.sub.Tensor" or len(apart.args) != 2:
                return False
            sides = [self._made(_ref(apart, at)) for at in (0, 1)]
            ranges = [self._made(_ref(side, 0)) for side in sides]
        except _NoMatch:
            return False
        views = [(side.op, side.args[1]) for side in sides]
        rows, cols = both.shape[-2:]
        return (
            views == [("aten.unsqueeze.default", -2), ("aten.unsqueeze.default", -1)]
            and [item.op for item in ranges] == ["aten.arange.start_step"] * 2
            and [item.args for item in ranges] == [(0, cols), (0, rows)]
        )

    def _number(self, name: str) -> float:
        node = self._made(name)
        value = node.args[0]
        if node.op != "aten.scalar_tensor.default" or not isinstance(value, int | float):
            raise _NoMatch
        return float(value)

    def _is_scaled(self, node: Node) -> bool:
        plain = len(node.args) == 2 and isinstance(node.args[1], int | float)
        return plain and node.op in _SCALED and not self._follows_sizes(node)

    def _follows_sizes(self, node: Node) -> bool:
        return any(item.node == node.name for item in self.graph.symbolic or ())

    def _scale(self, node: Node) -> None:
        number = float(str(node.args[1]))
        if not number:
            raise _NoMatch
        self.scale *= number ** _SCALED[node.op]

    # ---- operands

    def _operand(self, name: str, last: Node) -> str:
        """The operand in the type of its input: what made it float32, or scaled it, left out."""
        views: list[Node] = []
        left_out = False
        while (node := self.nodes.get(name)) is not None:
            if node.op == _CAST and node.dtype is DType.FLOAT32 and self._widens(node):
                left_out = True
            elif self._is_scaled(node) and node.dtype in _FLOATS:
                self._scale(node)
                left_out = True
            elif node.op == _CLONE:  # a view of what it copies has the same elements
                left_out = True
            elif _is_view(node):
                views.append(node)
            else:
                break
            name = _ref(node, 0)
        if not left_out:
            return views[0].name if views else name
        return self._again(name, views[::-1], last)

    def _widens(self, node: Node) -> bool:
        return self.graph.spec(_ref(node, 0)).dtype in SHORT_FLOATS

    def _again(self, name: str, views: list[Node], last: Node) -> str:
        """The same views of another value."""
        dtype = self.graph.spec(name).dtype
        for view in views:
            new = f"{view.name}_of_{last.name}"
            known = next((item.name for item in self.added if item.name == new), None)
            if known is None:
                args = (Ref(ref=name), *view.args[1:])
                update = {"name": new, "args": args, "dtype": dtype}
                self.added.append(view.model_copy(update=update))
                for item in self.graph.symbolic or ():
                    if item.node == view.name:
                        self.symbolic.append(item.model_copy(update={"node": new}))
            name = new
        return name

    def _spread(self, mask: str, views: list[str], last: Node) -> str:
        """A mask with the dimensions of the weights, by the views that these go through."""
        path = [self.nodes[name] for name in reversed(views)]
        before = self.graph.spec(_ref(path[0], 0)).shape if path else None
        shape = self.graph.spec(mask).shape
        if shape == (before if path else self.graph.spec(_ref(last, 0)).shape):
            return self._again(mask, path, last)
        if path and path[0].op == "aten.expand.default":
            return self._again(mask, path, last)
        raise _NoMatch

    # ---- graph

    def _made(self, name: str) -> Node:
        if name not in self.nodes:
            raise _NoMatch
        return self.nodes[name]

    def _base(self, name: str) -> tuple[Node, list[str]]:
        """What a value is a view of, and the views, the last first."""
        views: list[str] = []
        node = self._made(name)
        while _is_view(node):
            views.append(node.name)
            node = self._made(references(node)[0])
        return node, views

    def _check_inside(self, last: Node) -> None:
        allowed = {*self.inside, last.name}
        for name in self.inside:
            if name in self.graph.outputs or not self.readers.get(name, set()) <= allowed:
                raise _NoMatch

    def _replaced(self, last: Node, made: Mapping[str, object], dtype: DType) -> Graph:
        """Where nothing but a cast back follows, the result has that type at once."""
        narrow = {node.name for node in self._narrowing(last, dtype)}
        nodes: list[Node] = []
        for node in self.graph.nodes:
            if node.name == last.name:
                nodes += self.added
                kept = dtype if narrow else node.dtype
                nodes.append(node.model_copy(update={**made, "dtype": kept}))
            elif node.name in narrow:
                cast = node.op == _CAST
                new = {"op": "aten.alias.default", "args": node.args[:1], "kwargs": {}}
                nodes.append(node.model_copy(update=new if cast else {"dtype": dtype}))
            else:
                nodes.append(node)
        symbolic = self.graph.symbolic
        if symbolic is not None:
            symbolic = (*symbolic, *self.symbolic)
        update = {"nodes": tuple(nodes), "symbolic": symbolic}
        return self.graph.model_copy(update=update)

    def _narrowing(self, last: Node, dtype: DType) -> Iterator[Node]:
        """Views of a result in float32, up to the cast to `dtype`; nothing where there is none."""
        path: list[Node] = []
        name = last.name
        while dtype in SHORT_FLOATS and last.dtype is DType.FLOAT32:
            readers = self.readers.get(name, set())
            if len(readers) != 1 or name in self.graph.outputs:
                return
            node = self.nodes[next(iter(readers))]
            if node.op == _CAST and node.dtype is dtype:
                yield from (*path, node)
                return
            if not is_free(node):
                return
            path.append(node)
            name = node.name


def _is_view(node: Node) -> bool:
    return is_free(node) and len(references(node)) == 1


def _ref(node: Node, at: int) -> str:
    value = node.args[at] if at < len(node.args) else None
    if not isinstance(value, Ref):
        raise _NoMatch
    return value.ref
