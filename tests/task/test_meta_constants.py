"""Constants on the meta device have the values that code writes out, as long as these hold."""

from __future__ import annotations

import torch

from npusmith.task.meta_constants import MetaConstants, values_of


def test_written_values_are_kept_until_the_tensor_changes() -> None:
    with torch.device("meta"), MetaConstants():
        kept, changed, part = (torch.tensor([1.0, 2.0]) for _ in range(3))
        changed.mul_(3.0)
        part[:1].fill_(0.0)
        made = torch.zeros(2)
    assert kept.is_meta and values_of(kept).tolist() == [1.0, 2.0]
    assert all(values_of(tensor).is_meta for tensor in (changed, part, made))


def test_what_is_made_of_tensors_without_values_has_none() -> None:
    with torch.device("meta"), MetaConstants():
        made = torch.as_tensor(torch.empty(2) * 2.0)
    assert values_of(made).is_meta
