"""MultiKernelBench in other shapes, types and values."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from npusmith.bench.model import Candidate, Limits
from npusmith.bench.suites import multikernelbench, open_suite
from npusmith.errors import NpusmithError
from npusmith.task.edges import near_one, signed

COPY = Path(__file__).parents[1] / "kernels" / "copy.tile.py"
TASK = """import torch
class Model(torch.nn.Module):
    def __init__(self, dim):
        super(Model, self).__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
    def forward(self, x):
        return torch.relu(x)
rows = 40
def get_inputs():
    return [torch.rand(rows, 4)]
def get_init_inputs():
    return [1]
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of our own writing with two revisions; the first has smaller shapes."""
    root = tmp_path_factory.mktemp("multi")
    (root / "reference" / "activation").mkdir(parents=True)
    (root / "dataset.py").write_text("dataset = {}\n")
    task = root / "reference" / "activation" / "relu.py"
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for rows in (40, 400_000):
        task.write_text(TASK.replace("40", str(rows)))
        subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
        commit = ["git", "-C", str(root), *who, "commit", "-q", "-m", "shapes"]
        subprocess.run(commit, check=True)
    return root


def first_commit(root: Path) -> str:
    command = ["git", "-C", str(root), "rev-list", "--max-parents=0", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


PLANES = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(65536)
    def forward(self, x):
        return self.norm(x.transpose(1, -1))
batch, channels = 16, 65536
height, width = 24, 24
def get_inputs():
    return [torch.rand(batch, channels, height, width)]
def get_init_inputs():
    return []
"""


def holds(root: Path, place: str, text: str) -> None:
    """Makes that folder a checkout of our own writing with this task alone."""
    task = root / "reference" / place
    task.parent.mkdir(parents=True)
    task.write_text(text)
    (root / "dataset.py").write_text("dataset = {}\n")


def test_the_least_of_the_rule_is_taken_and_named_and_unpacked_sizes_are_sizes(
    tmp_path: Path,
) -> None:
    holds(tmp_path, "normalization/planes.py", PLANES)
    suite = open_suite("multikernelbench", tmp_path, {"scale_mb": "1"})
    (item,) = suite.items()
    assert item.name == "normalization/planes@2MB" and not item.skipped
    text = suite.brief(item).reference
    assert "batch, channels = 2, 65536\n" in text and "height, width = 2, 2\n" in text
    suite = open_suite("multikernelbench", tmp_path, {"scale_mb": "1", "input_mb": "1"})
    (item,) = suite.items()
    assert item.skipped == "2 MB of inputs; the least of the rule for smaller shapes"


def test_original_shapes_come_from_the_checkouts_history(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multikernelbench, "ORIGINAL", first_commit(root))
    suite = open_suite("multikernelbench", root, {"shapes": "original"})
    (item,) = suite.items()
    brief = suite.brief(item)
    assert item.name == "activation/relu@original" and not item.skipped
    assert "rows = 40\n" in brief.reference and brief.path is not None
    assert brief.path.read_text() == brief.reference and brief.training


def test_a_checkout_without_its_history_is_refused(root: Path) -> None:
    suite = open_suite("multikernelbench", root, {"shapes": "original"})
    (item,) = suite.items()
    assert item.skipped.startswith("file-missing: reference/activation/relu.py is not to be had")


def test_a_category_that_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(NpusmithError) as caught:
        open_suite("multikernelbench", root, {"categories": "loss"})
    assert caught.value.code == "file-missing"


def test_reduced_shapes_are_the_default_and_can_be_turned_off(root: Path) -> None:
    (item,) = open_suite("multikernelbench", root, {"scale_mb": "2"}).items()
    assert item.name == "activation/relu@2MB"
    (item,) = open_suite("multikernelbench", root, {"shapes": "full"}).items()
    assert item.name == "activation/relu"


WIDE = """
import torch
from torch import nn

batch_size, in_features, out_features = 1024, 32768, 32768


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
"""


GIVEN = """import torch
class Model(torch.nn.Module):
    def __init__(self, batch, length, block):
        super().__init__()
        assert length % block == 0
        self.batch = batch
    def forward(self, x):
        return x.view(self.batch, -1).cumsum(-1)
batch = 2048
length, block = 8192, 64
def get_inputs():
    return [torch.rand(batch, length)]
def get_init_inputs():
    return [batch, length, block]
"""


def test_a_model_that_is_given_its_sizes_shrinks_with_its_inputs(tmp_path: Path) -> None:
    holds(tmp_path, "math/given.py", GIVEN)
    suite = open_suite("multikernelbench", tmp_path, {"scale_mb": "1"})
    (item,) = suite.items()
    assert item.name == "math/given@1MB" and not item.skipped
    text = suite.brief(item).reference
    assert "batch = 2048\n" not in text and "length, block = 8192" not in text


def test_of_kernelbench_models_shrink_as_well_as_inputs(tmp_path: Path) -> None:
    task = tmp_path / "KernelBench" / "level2" / "1_wide.py"
    task.parent.mkdir(parents=True)
    task.write_text(WIDE)
    suite = open_suite("kernelbench", tmp_path, {"levels": "2"})
    (item,) = suite.items()
    assert item.name == "level2/1_wide@40MB" and not item.skipped
    text = suite.brief(item).reference
    assert "batch_size, in_features, out_features = 256, 9216, 4096\n" in text
    (item,) = open_suite("kernelbench", tmp_path, {"levels": "2", "shapes": "full"}).items()
    assert item.name == "level2/1_wide"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_models_and_inputs_take_the_type_that_is_asked_for(root: Path, dtype: str) -> None:
    suite = open_suite("multikernelbench", root, {"dtype": dtype})
    (item,) = suite.items()
    assert item.name == f"activation/relu@{dtype}" and item.dtype == dtype
    space: dict[str, Any] = {}
    exec(suite.brief(item).reference, space)
    (x,) = space["get_inputs"]()
    kind = getattr(torch, dtype)
    assert x.dtype is kind
    assert space["Model"](1).weight.dtype is kind


def test_a_kernel_that_copies_is_no_relu_though_the_suite_says_so(root: Path) -> None:
    suite = open_suite("multikernelbench", root, {"scale_mb": "0.1"})
    (item,) = suite.items()
    files = {"copy.tile.py": COPY.read_text()}
    candidate = Candidate(format="program", files=files, writer="test")
    record = suite.evaluate(item, candidate, Limits(seconds=60, memory_mb=4096, trials=2))
    assert record.compiled and record.weak_task
    assert record.official and not record.strict
    failed = {note.name for note in record.trials if note.message}
    assert failed == {"signed", "near one", "negatives", "inf"}
    assert record.provenance["shapes"].startswith("reduced to 0 MB: rows 400000 ->")
    assert record.true_shape.startswith("wrong: ")  # its values there are signed


def test_values_near_one_multiply_to_something() -> None:
    x = torch.rand(4096, 3, generator=torch.Generator().manual_seed(5))
    product = near_one(x, 1).double().prod(dim=0).abs()
    assert bool(((product > 1e-12) & (product < 1e12)).all())
    spread = float(signed(x, 1).std())
    assert abs(float(signed(x, 1).mean())) < 1e-5 and spread == pytest.approx(1, abs=1e-3)


DEEP = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = [torch.nn.Conv2d(512, 512, 3, padding=1) for _ in range(6)]
        self.layers = torch.nn.Sequential(*layers)
    def forward(self, x):
        return self.layers(x)
batch = 16
def get_inputs():
    return [torch.rand(batch, 512, 28, 28)]
def get_init_inputs():
    return []
"""


def test_a_call_that_is_much_work_shrinks_though_its_inputs_are_small(tmp_path: Path) -> None:
    """26 MB of inputs, and 355 GFLOP of convolutions: half a minute of a core for each set."""
    holds(tmp_path, "arch/deep.py", DEEP)
    suite = open_suite("multikernelbench", tmp_path, {})
    (item,) = suite.items()
    text = suite.brief(item).reference
    assert "batch = 6\n" in text and "(batch, 512, 12, 12)" in text
    suite = open_suite("multikernelbench", tmp_path, {"shapes": "full"})
    (item,) = suite.items()
    assert "batch = 16\n" in suite.brief(item).reference
