"""Concatenations that begin with what an earlier one concatenates."""

from __future__ import annotations

import torch
from modules import agrees, capture, plan_graph

from npusmith.plan.concat_chains import with_concat_chains
from npusmith.task.graph import references


def dense(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """Each layer reads all before it, normalised, as in a DenseNet."""
    found = [x]
    for weight in weights:
        y = torch.cat(found, 1)
        y = (y - y.mean(0)) / (y.var(0, unbiased=False) + 1e-5).sqrt()
        found.append(torch.relu(y) @ weight)
    return torch.cat(found, 1)


def inputs(rows: int) -> tuple[torch.Tensor, ...]:
    weights = [torch.rand(24 + 8 * i, 8) - 0.5 for i in range(6)]
    return torch.rand(rows, 24), *weights


def test_layers_that_concatenate_all_before_them_share_their_kernels() -> None:
    graph = capture(dense, *inputs(40))
    made = plan_graph(graph)
    assert 2 * len(made.program.kernels) < len(made.program.host.launches)
    agrees(made, dense, *inputs(40))
    agrees(made, dense, *inputs(57))


def test_only_concatenations_along_the_same_axis_are_read() -> None:
    def joined(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.cat([a, b], 1), torch.cat([a, b], 0), torch.cat([a, b, c], -1),
            torch.cat([a, b, c, a], 1), torch.cat([b, a, c], 0), torch.cat([a, b], 1),
        )  # fmt: skip

    graph = capture(joined, torch.rand(4, 6), torch.rand(4, 6), torch.rand(4, 6))
    read = [references(node) for node in with_concat_chains(graph).nodes]
    a, b, c = (item.name for item in graph.inputs)
    first, _, third, *_ = (node.name for node in graph.nodes)
    assert read == [[a, b], [a, b], [first, c], [third, a], [b, a, c], [a, b]]
