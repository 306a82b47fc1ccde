"""Plans of graphs that differ in the numbers of names: renamed, they are what would be written."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from modules import CHIP, capture

from npusmith.errors import PlanError
from npusmith.plan.paired_kernels import write_paired
from npusmith.plan.renamed_plans import renamed_plan
from npusmith.plan.schedule import Schedule
from npusmith.plan.structural_key import structural_key
from npusmith.plan.structures import Plan
from npusmith.plan.write import write
from npusmith.plan.write_kernel import write_kernel
from npusmith.task.graph import Graph


class Blocks(torch.nn.Module):
    """A product with what is behind it, and a norm, several times."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(32) for _ in range(4))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + torch.nn.functional.gelu(layer(norm(x)))
        return x


def twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.exp(x) * y + torch.tanh(x)


def alone(graph: Graph) -> Plan:
    """Its kernels as they are written where nothing else was."""
    try:
        return write_kernel(graph, "op", CHIP)
    except PlanError:
        return write_paired(graph, "op", CHIP, Schedule(), None)


def called(graph: Graph, *pairs: tuple[str, str]) -> Graph:
    """The graph with other names."""
    text = graph.model_dump_json()
    for old, new in pairs:
        text = text.replace(f'"{old}"', f'"{new}"')
    return Graph.model_validate_json(text)


def test_a_renamed_plan_is_the_plan_that_is_written() -> None:
    groups: dict[str, list[Graph]] = {}
    for graph, _ in write(capture(Blocks(), torch.randn(20, 32)), "op", CHIP).parts:
        groups.setdefault(structural_key(graph), []).append(graph)
    made = paired = 0
    for graphs in groups.values():
        written = [(graph, alone(graph)) for graph in graphs] if len(graphs) > 1 else []
        for (own, plan), (other, wanted) in combinations(written, 2):
            if (found := renamed_plan(plan, own, other)) is not None:
                assert found == wanted
                made, paired = made + 1, paired + (len(found.program.kernels) == 2)
    assert made and paired


@pytest.mark.parametrize(
    ("old", "new", "legal"),
    [("aa_1", "aa_2", True), ("aa_1", "aa_11", False), ("aa_1", "ab_1", False)],
)
def test_digits_alone_may_differ_and_are_as_many(old: str, new: str, legal: bool) -> None:
    graph = called(capture(twice, torch.randn(8, 40), torch.randn(8, 40)), ("args_0", old))
    other = called(graph, (old, new))
    assert structural_key(graph) == structural_key(other)
    found = renamed_plan(alone(graph), graph, other)
    assert found == (alone(other) if legal else None)


def test_names_that_come_in_another_order_are_not_renamed() -> None:
    graph = capture(twice, torch.randn(8, 40), torch.randn(8, 40))
    own, same, other = (
        called(graph, ("args_0", f"aa_{one}"), ("args_1", "aa_4")) for one in (2, 3, 5)
    )
    assert renamed_plan(alone(own), own, same) == alone(same)
    assert renamed_plan(alone(own), own, other) is None


def test_a_tensor_that_is_called_like_a_buffer_but_for_its_number_is_not_renamed() -> None:
    graph = capture(twice, torch.randn(8, 40), torch.randn(8, 40))
    own, same = (called(graph, ("args_0", f"aa_{one}")) for one in (2, 3))
    buffers = {item.name for item in alone(own).program.kernel.buffers}
    taken = min(name for name in buffers if "a" not in name)
    other = called(graph, ("args_0", f"{taken}2"))
    assert renamed_plan(alone(own), own, same) is not None
    assert taken in {item.name for item in alone(other).program.kernel.buffers}
    assert renamed_plan(alone(other), other, called(graph, ("args_0", f"{taken}3"))) is None
