"""npusmith from Python: modules and functions of the calling program, and what comes back."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import npusmith as ns
from npusmith.bench.archive import open_run
from npusmith.errors import NpusmithError
from npusmith.pickled import save

EXAMPLE = Path(__file__).parents[2] / "examples" / "softmax.py"


class Gate(torch.nn.Module):
    """A gate with a weight, a number and two outputs."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor, scale: float = 1.5) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.nn.functional.silu(x) * self.weight * scale, x.amax(-1)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Gate, Any]:
    module = Gate(40)
    out = tmp_path_factory.mktemp("gate") / "out"
    return module, ns.generate(module, [torch.randn(33, 40)], out=out, search=0)


def same(found: Any, wanted: Any) -> bool:
    return torch.allclose(found, wanted, rtol=1e-4, atol=1e-5) and found.dtype == wanted.dtype


def test_a_module_of_the_program_becomes_an_operator_that_is_called(gate: Any) -> None:
    module, operator = gate
    assert operator.passed and operator.verdict.rung.value == "race-free on the twin"
    for rows in (33, 7):
        x = torch.randn(rows, 40)
        assert [*map(same, operator(x), module(x))] == [True, True]
    with torch.no_grad():
        module.weight.mul_(2)  # parameters are read at each call
    assert same(operator(x, 1.5)[0], module(x)[0])


def test_what_was_written_can_be_looked_at(gate: Any) -> None:
    operator = gate[1]
    assert "extern" in operator.kernel and "@kernel" in operator.program
    assert operator.schedule["chip"] == "910B2"
    assert operator.report.is_file() and operator._repr_html_().startswith("<iframe srcdoc=")
    assert (operator.folder / "gate.pkl").is_file()  # model_new.py reads it


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((torch.ones(33, 40), 2.0), "[2.0]"),
        ((torch.ones(33, 41),), "(33, 41)"),
        ((torch.ones(3, 4, 40),), "(3, 4, 40)"),
        ((torch.ones(40),), "(40,)"),
        ((torch.ones(33, 40, dtype=torch.float64),), "float64"),
        ((torch.ones(33, 40, dtype=torch.float16),), "elements of x float16"),
        ((), ""),
    ],
)
def test_what_it_does_not_serve_is_refused(gate: Any, inputs: Any, said: str) -> None:
    with pytest.raises(NpusmithError) as caught:
        gate[1](*inputs)
    assert said in f"{caught.value.message} {caught.value.seen}"


def test_an_operator_is_loaded_again_and_judged_again(gate: Any) -> None:
    module, operator = gate
    again = ns.load(operator.folder)
    x = np.random.default_rng(1).standard_normal((5, 40), dtype=np.float32)
    found = again(x, 1.5)[1]
    assert isinstance(found, np.ndarray) and np.array_equal(found, x.max(-1))
    verdict = ns.judge(operator.folder, module, [torch.randn(33, 40)])
    assert verdict.verdict == "pass"
    with pytest.raises(NpusmithError, match="does not exist"):
        ns.load(operator.folder.parent)
    (operator.folder.parent / "result.json").write_text("{}")
    with pytest.raises(NpusmithError, match="not what `generate` leaves"):
        ns.load(operator.folder.parent)


NESTED = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, scale: float = 1.5, *, turned: bool = True):
        y = x * (scale if turned else 1.0)
        return {"y": y, "sums": [y.sum(-1), (y.amax(-1),)]}

def get_inputs():
    return [torch.randn(9, 40), 2.5]

def get_init_inputs():
    return []
"""


def test_outputs_are_nested_as_forward_nests_them_and_what_has_a_default_may_be_left_out(
    tmp_path: Path,
) -> None:
    task = tmp_path / "nested.py"
    task.write_text(NESTED)
    made = ns.generate(task, out=tmp_path / "out", search=0)
    assert made.passed
    x = torch.randn(7, 40)
    for found in (made(x, 2.5), ns.load(made.folder)(x, scale=2.5, turned=True)):
        assert [*found] == ["y", "sums"] and same(found["y"], x * 2.5)
        total, (largest,) = found["sums"]
        assert isinstance(found["sums"], list) and same(total, x.sum(-1) * 2.5)
        assert same(largest, x.amax(-1) * 2.5)
    with pytest.raises(NpusmithError) as caught:
        made(x)  # as captured: 2.5
    assert "[1.5, True]" in caught.value.seen
    text = (made.folder / "model_new.py").read_text()
    assert "return {'y': found[0], 'sums': [found[1], (found[2],)]}" in text


def test_a_verdict_is_not_that_of_files_that_were_changed_since(gate: Any, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(gate[1].folder, folder)
    assert ns.load(folder).passed
    (kernel,) = (folder / "op_kernel").glob("*.cpp")
    kernel.write_text(kernel.read_text() + "// changed\n")
    again = ns.load(folder)
    assert again.changed and not again.passed and again.verdict.verdict == "pass"


def test_a_decorated_function_gets_operators_as_it_needs_them(tmp_path: Path) -> None:
    @ns.operator(out=tmp_path / "out", search=0)
    def distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a - b).abs().sum(-1)

    for shape in ((9, 21), (5, 13), (2, 3, 13)):
        a, b = torch.randn(shape), torch.randn(shape)
        assert same(distance(a, b), (a - b).abs().sum(-1))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0", "1"]  # two ranks


def test_classes_of_scripts_and_of_modules_beside_them_are_known_in_the_sandbox(
    tmp_path: Path,
) -> None:
    (tmp_path / "beside.py").write_text("FACTOR = 3\ndef triple(x):\n    return x * FACTOR\n")
    script = """
import npusmith as ns, torch
from beside import triple
SHIFT = 2
class Triple(torch.nn.Module):
    def forward(self, x, index):
        return triple(x)[index] + SHIFT
x, index = torch.arange(8.0), torch.tensor([3, 1, 7])
done = ns.generate(Triple(), [x, index], out="made", search=0)
print(done.passed, done(x, index).tolist())
"""
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "True [11.0, 5.0, 23.0]", done.stderr


def test_what_cannot_be_taken_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(NpusmithError, match="needs inputs"):
        ns.generate(Gate(4), out=tmp_path / "out")
    lock = threading.Lock()

    def locked(x: torch.Tensor) -> torch.Tensor:
        with lock:
            return x + 1

    with pytest.raises(NpusmithError) as caught:
        ns.generate(locked, [torch.ones(4)], out=tmp_path / "out")
    assert caught.value.code == "task-pickle" and "lock" in caught.value.message
    with pytest.raises(AttributeError):
        ns.no_such_name  # noqa: B018


def test_inputs_are_drawn_like_the_examples(tmp_path: Path) -> None:
    examples = [torch.arange(12).reshape(3, 4), torch.ones(5, dtype=torch.float16), 3, None]
    task = save(lambda a, b, c, d: a, examples, tmp_path, "mine")
    held: dict[str, Any] = {"__file__": str(task)}
    exec(compile(task.read_text(), str(task), "exec"), held)
    torch.manual_seed(0)
    a, b, c, d = held["get_inputs"]()
    assert sorted(a.flatten().tolist()) == [*range(12)] and not torch.equal(a, examples[0])
    assert b.shape == (5,) and b.dtype == torch.float16 and len(set(b.tolist())) == 5
    assert (c, d) == (3, None)


def test_a_benchmark_is_run_and_its_records_stay(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    text = EXAMPLE.read_text(encoding="utf-8").replace(
        "torch.randn(1024, 1024)", "torch.randn(40, 33)"
    )
    (tasks / "softmax.py").write_text(text)
    seen: list[Any] = []
    found = ns.benchmark(
        "folder", tasks, "plan:2", out=tmp_path / "run", workers=1, watch=seen.append
    )
    assert (found.overall.tasks, found.overall.strict) == (1, 1)
    assert seen[-1].done == 1
    with open_run(tmp_path / "run") as run:
        (record,) = run.records()
        assert record.time_us and run.document(run.summary())["writer"] == "plan:2"
        assert "tried of at most 2" in record.provenance["search_policy"]
    with pytest.raises(NpusmithError) as caught:  # its records are kept
        ns.benchmark("folder", tasks, out=tmp_path / "run")
    assert caught.value.code == "run-exists"


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    text = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "page.py").write_text(f"{text}\nprint(operator.passed, y.shape[0])\n")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True", "7"], done.stderr


def test_importing_npusmith_loads_no_torch() -> None:
    text = "import sys, npusmith; print(npusmith.__version__, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [ns.__version__, "False"]


def test_a_task_file_is_taken_as_it_is(tmp_path: Path) -> None:
    steps: list[str] = []

    class Told:
        def step(self, name: str, detail: str = "") -> None:
            steps.append(name)

    done = ns.generate(EXAMPLE, out=tmp_path / "out", search=0, progress=Told())
    x = torch.randn(17, 65)
    assert done.passed and same(done(x), x.softmax(-1)) and "reference" in steps
    profiled = ns.profile(done.folder, EXAMPLE, out=tmp_path / "profile")
    assert profiled.profile is not None and profiled.profile.kernel_us > 0
