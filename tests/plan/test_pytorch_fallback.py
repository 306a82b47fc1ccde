"""What cannot be written is left to PyTorch, between operators for everything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from modules import CHIP, capture

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Dim, Tensor, TensorRole
from npusmith.ir.spec import Source
from npusmith.plan import pytorch_fallback as module
from npusmith.plan.pytorch_fallback import Composition, with_fallback
from npusmith.task.composition import check_composition, is_operator, left_nodes
from npusmith.task.graph import Graph
from npusmith.task.module_forward import read_forward


def composed(call: Callable[..., Any], *inputs: torch.Tensor) -> Composition:
    graph = capture(call, *inputs)
    with pytest.raises(PlanError) as refused:
        module.write(graph, "op_custom", CHIP)
    found = with_fallback(graph, "op_custom", CHIP, refused.value)
    check_composition(found.graph)
    return found


def operations(graph: Graph) -> list[str]:
    return ["operator" if is_operator(node) else node.op.split(".")[1] for node in graph.nodes]


def around(x: torch.Tensor) -> torch.Tensor:
    found = torch.histc(torch.relu(x) * 2, 8, 0.0, 3.0)
    return torch.softmax(found, 0) + x.sum()


def test_what_has_no_rule_stands_between_two_operators() -> None:
    found = composed(around, torch.rand(9, 16))
    assert operations(found.graph) == ["operator", "getitem", "getitem", "histc", "operator"]
    assert [item.node.op for item in found.left] == ["aten.histc.default"]
    assert "no rule" in found.left[0].why


def test_operations_that_do_not_need_it_share_an_operator() -> None:
    """Two histograms that do not read each other are side by side, not one behind the other."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        first = torch.histc(x.exp(), 4, 0.0, 3.0) + 1
        return torch.histc(x.relu(), 4, 0.0, 3.0) * first

    found = composed(twice, torch.rand(9, 16))
    assert operations(found.graph).count("operator") == 2
    assert [node.op for node in left_nodes(found.graph)] == ["aten.histc.default"] * 2


def test_types_that_the_chip_lacks_stay_with_what_makes_and_reads_them() -> None:
    def spectrum(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(torch.fft.rfft(x.relu()) * 2, n=16) + x

    found = composed(spectrum, torch.rand(9, 16))
    left = [node.op.split(".")[1] for node in left_nodes(found.graph)]
    assert left == ["_fft_r2c", "mul", "_fft_c2r"]
    assert operations(found.graph).count("operator") == 2


def test_nothing_to_write_is_refused() -> None:
    with pytest.raises(PlanError, match="histc"):
        composed(lambda x: torch.histc(x, 4, 0.0, 1.0), torch.rand(9, 16))


def test_too_much_for_one_operator_becomes_two(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.write

    def few(graph: Graph, name: str, chip: Any) -> Any:
        if len(graph.nodes) > 2:
            raise PlanError("plan-length", "too long")
        return real(graph, name, chip)

    monkeypatch.setattr(module, "write", few)
    found = composed(lambda x: (x.exp() + 1).relu().sin(), torch.rand(9, 16))
    assert operations(found.graph) == ["operator", "operator"]
    assert found.left == ()


def test_views_between_are_made_where_they_are_read() -> None:
    def viewed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = x.exp().reshape(6, 24)
        found = torch.linalg.eigvalsh(rows @ rows.transpose(0, 1))
        return found.view(2, 3), rows

    x = torch.rand(9, 16)
    found = composed(viewed, x)
    results = [node for node in found.graph.nodes if node.op == "aten.getitem"]

    class Library:
        """Gives results of the right shapes."""

        def __getattr__(self, name: str) -> Callable[..., Any]:
            made = [node.shape for node in results if str(node.args[0]).find(name) > 0]
            return lambda *given: [torch.rand(shape) for shape in made]

    assert set(operations(found.graph)) >= {"operator", "_linalg_eigh"}
    forward = read_forward(found.graph, {"torch": torch, "custom_ops_lib": Library()})
    assert forward([x], {})[0].shape == (2, 3)


def test_a_tensor_that_was_given_for_sizes_nobody_needs_is_no_input() -> None:
    """Else it would be declared and never used."""
    own = module.write(capture(lambda x: x.exp() + 1, torch.rand(9, 16)), "op_custom", CHIP)
    own = replace(own, spec=replace(own.spec, legal=None))
    (port,), kernel, host = own.spec.inputs, own.program.kernel, own.program.host
    more = replace(port, name="more", source=Source.CONSTANT, target="more")
    tensor = Tensor("more", port.dtype, TensorRole.INPUT)
    program = replace(
        own.program,
        kernels=(replace(kernel, tensors=(tensor, *kernel.tensors)),),
        host=replace(host, tensors=("more", *host.tensors)),
    )
    served = Binary(BinOp.EQ, Dim("more", 0), Dim(port.name, 0))
    spec = replace(own.spec, inputs=(more, port), legal=(served,))
    assert module._without_unused(replace(own, program=program, spec=spec)) == own
    (result,) = spec.outputs
    sized = replace(spec, outputs=(replace(result, dims=(Dim("more", 0), result.dims[1])),))
    with pytest.raises(PlanError) as refused:
        module._without_unused(replace(own, program=program, spec=sized))
    assert refused.value.code == "plan-fixed-size"
