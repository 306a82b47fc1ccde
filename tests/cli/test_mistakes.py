"""Mistakes that users make: each message names the place, the cause and the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.cli.main import call

TASK = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""
TILE = """@host
def host(x, y):
    launch(k, 1)

@kernel
def k(x: input(float32), y: output(float32)):
    b = ub(64, float32)
    c = ub(64, float32)
    with copy_in:
        load(b, x[0], 64)
    with compute:
        relu(c, b, 64)
    with copy_out:
        store(y[0], c, 64)
"""
FILES = {
    "good.py": TASK,
    "net.py": TASK.replace("class Model", "class Net"),
    "inputs.py": TASK.replace("def get_inputs", "def inputs"),
    "syntax.py": TASK.replace("torch.relu(x)", "torch.relu(x"),
    "plain.py": TASK.replace("(torch.nn.Module)", ""),
    "two.py": TASK.replace("(self, x)", "(self, x, y)"),
    "cuda.py": TASK.replace("(4, 8)", "(4, 8, device='cuda')"),
    "name.tile.py": TILE.replace("relu(c", "rellu(c"),
    "stage.tile.py": TILE.replace("with compute", "with copy_in"),
    "colon.tile.py": TILE.replace("with compute:", "with compute"),
    "sched.json": '{"a": 1}',
}

# The command, then what its message must hold: the cause with its place, and the next step.
MISTAKES = (
    ("genrate good.py", "No such command 'genrate'", "Did you mean 'generate'?"),
    ("generate", "Missing argument 'TASK'", "npusmith generate --help"),
    ("generate nothing.py", "nothing.py does not exist", "check the path"),
    ("generate empty", "empty is a folder", "name the .py file itself"),
    ("generate net.py", "net.py defines no class Model", "name the class: net.py:Net"),
    ("generate inputs.py", "inputs.py defines no get_inputs()", "add the part that is named"),
    ("generate plain.py", "Model is not a torch.nn.Module", "write class Model(torch.nn.Module)"),
    ("generate two.py", "positional argument: 'y'", "arguments of forward() from get_inputs()"),
    ("generate cuda.py", "cuda.py:8, get_inputs", "leave the device out"),
    ("generate syntax.py", "syntax.py:5: return torch.relu(x", "correct the line that is named"),
    ("generate good.py --chip 910B5", "no chip is called '910B5'", "use --chip 910B2"),
    ("generate good.py --tolerance loose", "called 'loose'", "leave --tolerance out"),
    ("generate good.py --writer agent", "no model is named", "give --base-url"),
    ("generate good.py --serach 3", "No such option: --serach", "--search"),
    ("generate good.py --search many", "'--search'", "npusmith generate --help"),
    ("generate good.py --schedule sched.json", "sched.json", "an output folder of npusmith"),
    ("run nowhere --task good.py", "nowhere does not exist", "check the path"),
    ("run good.py", "good.py needs a task", "npusmith generate good.py"),
    ("check sched.json", "neither a tile program nor C++", "name the source itself"),
    (
        "profile good.py --task good.py",
        "good.py has no project_json_src",
        "is a task: npusmith ge",
    ),
    ("check name.tile.py", "name.tile.py:12: rellu(c, b, 64)", "did you mean 'relu'?"),
    ("check stage.tile.py", "stage.tile.py:12: relu(c, b, 64)", "put it under `with compute:`"),
    ("check colon.tile.py", "colon.tile.py:11: with compute", "a missing colon"),
    ("bench kernelbnch --root .", "no suite is called kernelbnch", "did you mean 'kernelbench'?"),
    ("bench kernelbench --root empty", "no checkout of KernelBench", "check the path"),
    ("bench folder --root . --tasks nope", "no task is called nope", "--list names all of them"),
    ("report empty", "empty holds no run", "begin the run with `npusmith bench`"),
    ("explain hazrd", "has the code hazrd", "codes like hazard"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "cause", "step"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_is_answered_with_its_cause_and_the_next_step(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, cause: str, step: str
) -> None:
    code = int(call(command.split()))
    told = capsys.readouterr()
    text = " ".join((told.out + told.err).split())
    assert code in (1, 2, 3, 4)
    assert "error[" in text
    assert cause in text
    assert step in text
    assert "Traceback" not in text
