"""Task files that misbehave: each gets a clear error, and nothing is left behind or harmed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from npusmith.errors import CODES, TaskError
from npusmith.sandbox.probe import probe
from npusmith.task.trials import Limits, Sets, prepare

QUICK = Limits(seconds=60, memory_bytes=4 << 30)
MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
INPUTS = "def get_inputs():\n    return [torch.ones(4)]\n"
OUTSIDE = Path(tempfile.gettempdir()) / f"npusmith-task-outside-{os.getpid()}"

# Each deed is tried in one run; its outcome becomes one input value: 1 when it was denied.
DEEDS = f"""
import errno, os, socket, subprocess, sys
def denied(deed):
    try:
        deed()
    except OSError as error:  # forbidden, not to be changed, or not there at all
        return float(error.errno in (errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOENT))
    return 0.0
deeds = [
    lambda: os.fork(),
    lambda: subprocess.run(["true"]),
    lambda: socket.socket(),
    lambda: socket.create_connection(("127.0.0.1", 80)),
    lambda: open({str(OUTSIDE)!r}, "w"),
    lambda: open({__file__!r}).read(),
    lambda: os.kill(os.getppid(), 9),
    lambda: open("/proc/{os.getpid()}/environ").read(),
    lambda: os.execv("/bin/true", ["true"]),
]
print("noise " * 100_000)
print("noise", file=sys.stderr)
open("junk.bin", "w").write("left over")
os.makedirs("junk/deep")
class Model(nn.Module):
    def forward(self, x):
        print("forward")
        return x * 2
def get_inputs():
    outcomes = [denied(deed) for deed in deeds] + [float("MODEL_API_KEY" not in os.environ)]
    return [torch.tensor(outcomes)]
"""


@pytest.mark.skipif(
    not (probe()["landlock"] and probe()["seccomp"]), reason="needs Landlock and seccomp"
)
def test_noise_is_harmless_and_every_forbidden_deed_is_denied(write_task, tmp_path, monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", "secret")
    task = write_task(text=DEEDS)
    prepared = prepare(
        task, tmp_path, limits=QUICK, sets=Sets(seeds=(1,), edges=False, shapes=False)
    )
    assert prepared.trials[0].inputs[0].tolist() == [1.0] * 10
    assert not OUTSIDE.exists()
    assert not [path for path in prepared.folder.iterdir() if "junk" in path.name]


def refuse(task, folder: Path, **limits) -> TaskError:
    """The error that preparing raises; the folder is empty afterwards."""
    held = Limits(**{"seconds": 60, "memory_bytes": 4 << 30, **limits})
    with pytest.raises(TaskError) as caught:
        prepare(task, folder, limits=held, sets=Sets(seeds=(1,), edges=False, shapes=False))
    assert list(folder.iterdir()) == []
    assert caught.value.code in CODES
    return caught.value


@pytest.mark.parametrize(
    ("deed", "code"),
    [
        ("os.fork()", "task-denied"),
        (f"open({__file__!r}).read()", "task-denied"),  # it exists, but not for a task
        ("open('/usr/bin/none', 'w')", "task-denied"),
        ("os._exit(0)", "task-exited"),
        ("os.abort()", "task-crashed"),
        ("bytearray(64 << 30)", "task-memory"),
    ],
)
def test_a_deed_while_the_file_runs_has_its_code(write_task, tmp_path, deed, code):
    task = write_task(text=f"import os, sys\n{deed}\n{MODEL}{INPUTS}")
    error = refuse(task, tmp_path)
    assert error.code == code
    if code == "task-denied":
        assert error.place.line == task.text.splitlines().index(deed) + 1


def test_a_task_that_never_returns_is_ended_and_says_where(write_task, tmp_path):
    inputs = "def get_inputs():\n    while True: pass\n"
    error = refuse(write_task(text=MODEL + inputs), tmp_path, seconds=6)
    assert error.code == "task-timeout"
    assert error.seen.startswith("while ")


def test_a_task_that_keeps_allocating_is_ended(write_task, tmp_path):
    inputs = "def get_inputs():\n    held = []\n    while True: held.append(torch.ones(1 << 24))\n"
    error = refuse(write_task(text=MODEL + inputs), tmp_path, memory_bytes=1 << 30)
    assert error.code == "task-memory" and error.place.function == "get_inputs"


def test_trials_that_do_not_fit_on_disk_are_an_error(write_task, tmp_path):
    inputs = "def get_inputs():\n    return [torch.ones(1 << 20)]\n"
    assert refuse(write_task(text=MODEL + inputs), tmp_path, file_bytes=1 << 20).code == "task-disk"


def test_records_that_the_task_forges_are_refused(write_task, tmp_path):
    text = "import os\nopen('manifest.json', 'w').write('{}')\nos._exit(0)\n"
    assert refuse(write_task(text=text + MODEL + INPUTS), tmp_path).code == "task-result"


def test_a_patched_json_or_torch_only_spoils_the_task_s_own_records(write_task, tmp_path):
    text = "import json, pydantic\njson.dumps = lambda *a, **k: 'lies'\n"
    text += "pydantic.BaseModel.model_dump_json = lambda *a, **k: '{\"lies\": 1}'\n"
    assert refuse(write_task(text=text + MODEL + INPUTS), tmp_path).code == "task-result"


def test_an_earlier_result_survives_a_failure(write_task, tmp_path):
    good = write_task(text=MODEL + INPUTS)
    prepared = prepare(
        good, tmp_path, limits=QUICK, sets=Sets(seeds=(1,), edges=False, shapes=False)
    )
    with pytest.raises(TaskError):
        prepare(write_task(text="1 / 0\n" + MODEL + INPUTS), tmp_path, limits=QUICK)
    assert prepared.trials[0].inputs[0].tolist() == [1.0] * 4


# --- wrong values, in this process ------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "code"),
    [
        ("sys.exit('bye')", "task-exited"),
        ("torch.empty(1 << 44)", "task-memory"),
        ("raise MemoryError", "task-memory"),
        ("1 / 0", "task-raised"),
        ("import no_such_package", "task-module"),
        ("from torch import no_such_name", "task-raised"),
    ],
)
def test_what_the_file_raises_has_its_code_and_line(write_task, prepare_here, deed, code):
    task = write_task(text=f"import sys\n{deed}\n{MODEL}{INPUTS}")
    with pytest.raises(TaskError) as caught:
        prepare_here(task)
    assert caught.value.code == code
    assert caught.value.place.line == task.text.splitlines().index(deed) + 1


@pytest.mark.parametrize(
    ("inputs", "code", "word"),
    [
        ("{'x': torch.ones(4)}", "task-inputs", "dict"),
        ("[{'x': torch.ones(4)}]", "task-inputs", "dict"),
        ("torch.ones(4)", "task-inputs", "Tensor"),
        ("None", "task-inputs", "NoneType"),
        ("[object()]", "task-inputs", "object"),
        ("[torch.ones(4).numpy()]", "task-inputs", "ndarray"),
        ("[torch.ones(4).to_sparse()]", "task-inputs", "item 0"),
        ("[torch.ones(4, device='meta')]", "task-inputs", "item 0"),
        ("[torch.ones(0, 4)]", "task-empty", "item 0"),
        ("[torch.ones(4).double()]", "task-dtype", "float64"),
        ("[torch.ones(4, dtype=torch.complex64)]", "task-dtype", "complex64"),
        ("[torch.ones(4, device='cuda')]", "task-raised", "get_inputs()"),
        ("[1, 2]", "task-outputs", "tensors"),
    ],
)
def test_wrong_inputs_are_named(write_task, prepare_here, inputs, code, word):
    with pytest.raises(TaskError) as caught:
        prepare_here(write_task(inputs=inputs))
    assert caught.value.code == code, caught.value
    assert word in caught.value.message


def test_init_inputs_and_a_model_of_a_wrong_kind_are_named(write_task, prepare_here):
    with pytest.raises(TaskError) as caught:
        prepare_here(write_task(tail="def get_init_inputs():\n    return 3\n"))
    assert caught.value.code == "task-inputs"
    with pytest.raises(TaskError) as caught:
        prepare_here(write_task(text="class Model: pass\n" + INPUTS))
    assert caught.value.code == "task-parts"


def test_int_and_bool_inputs_are_taken(write_task, prepare_here):
    kinds = ("int8", "uint8", "int16", "int32", "int64", "bool", "float16", "bfloat16")
    for kind in kinds:
        task = write_task(inputs=f"[torch.ones(4, dtype=torch.{kind})]", forward="return x")
        assert prepare_here(task, seeds=(1,)).graph.inputs[0].dtype.value == kind
