"""Evaluating candidates: right and wrong ones, and those that attack whoever runs them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.bench.model import Candidate, Item, Limits, Record
from npusmith.bench.suites import judging, open_suite, place
from npusmith.bench.suites.torchsuite import TorchSuite
from npusmith.errors import NpusmithError
from npusmith.open_writer import open_writer
from npusmith.task.verdict import NOT_RUN, Rung, Trial
from npusmith.writers.folder import read_project_files

PROJECT = Path(__file__).parents[1] / "projects" / "add"
TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b
def get_inputs():
    return [torch.randn(8, 70), torch.randn(8, 70)]
def get_init_inputs():
    return []
"""
MODEL = """import torch
import torch_npu
import custom_ops_lib
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return custom_ops_lib.add_custom(a, b)
"""
BINDING = """#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"
at::Tensor add_custom(const at::Tensor &a, const at::Tensor &b) {
  at::Tensor result = at::empty_like(a);
  EXEC_NPU_CMD(aclnnAddCustom, a, b, result);
  return result;
}
at::Tensor hand_back(const at::Tensor &a, const at::Tensor &b) {
  add_custom(a, b);
  return a;
}
at::Tensor overwrite(at::Tensor a, const at::Tensor &b) { return a.copy_(add_custom(a, b)); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("add_custom", &add_custom);
  m.def("hand_back", &hand_back);
  m.def("overwrite", &overwrite);
}
"""
LIMITS = Limits(seconds=60, memory_mb=4096, trials=2)
Judge = Callable[..., Record]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tasks; some of them cannot give a reference."""
    root = tmp_path_factory.mktemp("tasks")
    (root / "add.py").write_text(TASK)
    (root / "relu.py").write_text(TASK.replace("a + b", "torch.relu(a - b)"))
    (root / "two.py").write_text(TASK.replace("a + b", "(a + b, [a + b])"))
    (root / "zero.py").write_text(TASK.replace("a + b", "(a + b) * 0"))
    (root / "same.py").write_text(TASK.replace("a + b", "a + b * 0"))
    (root / "view.py").write_text(TASK.replace("a + b", "a[:]"))
    (root / "raises.py").write_text(TASK.replace("a + b", "a + b[:3]"))
    (root / "scaled.py").write_text(
        TASK.replace("    def forward", """    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(70))
    def forward""").replace("a + b", "(a + b) * self.scale")
    )  # fmt: skip
    drop = TASK.replace("a + b", "torch.nn.functional.dropout(a, 0.5, self.training) + b")
    (root / "drop.py").write_text(drop)
    return root


@pytest.fixture(scope="module")
def judge(root: Path) -> Judge:
    suite = open_suite("folder", root)
    items = {item.name: item for item in suite.items()}
    known: dict[tuple[str, str, Limits], Record] = {}  # several tests look at the same record

    def run(candidate: Candidate, task: str = "add", limits: Limits = LIMITS) -> Record:
        key = candidate.model_dump_json(), task, limits
        if key not in known:
            known[key] = suite.evaluate(items[task], candidate, limits)
        return known[key].model_copy(deep=True)

    return run


@pytest.fixture(scope="module")
def written(root: Path) -> Candidate:
    """What the deterministic writer makes of relu."""
    suite, writer = open_suite("folder", root, {"names": "relu"}), open_writer("plan:0")
    (item,) = suite.items()
    return writer.write(suite.brief(item), 0, 0)


def project(**changes: str) -> Candidate:
    """The add project; `old=new` pairs change its kernel."""
    files = read_project_files(PROJECT)
    name = "op_kernel/add_custom.cpp"
    for old, new in changes.items():
        assert old in files[name]
        files[name] = files[name].replace(old, new)
    return Candidate(format="project", files=files, writer="test")


def six(model: str = MODEL, binding: str = BINDING) -> Candidate:
    """The same project in MultiKernelBench's six strings."""
    texts = {
        "project_json_src": (PROJECT / "add_custom.json").read_text(),
        "host_tiling_src": (PROJECT / "op_host" / "add_custom_tiling.h").read_text(),
        "host_operator_src": (PROJECT / "op_host" / "add_custom.cpp").read_text(),
        "kernel_src": (PROJECT / "op_kernel" / "add_custom.cpp").read_text(),
        "python_bind_src": binding,
        "model_src": model,
    }
    text = "".join(f"{name} = {value!r}\n" for name, value in texts.items())
    answer = f"Here is the answer.\n```python\n{text}```\n"
    return Candidate(format="six", files={"0.txt": answer}, writer="test")


def test_a_set_that_the_suite_does_not_look_at_stops_nothing_that_it_does() -> None:
    item = Item(suite="s", name="add", category="", source="add.py", digest="")
    record = judging.start_record("s", item, project(), LIMITS)
    record.compiled = True
    right = {"ended": True, "passed": True, "strict": True, "precise": True}
    sets = [
        Trial(name="random 0", kind="random", **right),
        Trial(name="random 1", kind="random", ended=True, message="off"),
        Trial(name="random 2", kind="random", skipped=f"{NOT_RUN}: random 1 decided"),
    ]
    judging.fold(record, sets, looked=1)
    assert (record.official, record.strict, record.accuracy) == (True, False, 1.0)
    judging.fold(record, sets)
    assert (record.official, record.strict, record.accuracy) == (False, False, 0.5)
    assert record.rung == Rung.RAN.value and record.error == "random 1: off"


# ---- honest candidates


def test_a_right_project_passes_every_rule(judge: Judge) -> None:
    record = judge(project())
    assert record.error == "" and record.skipped == ""
    assert (record.compiled, record.official, record.strict, record.precise) == (True,) * 4
    assert record.clean and record.rung == Rung.RACE_FREE.value
    assert [note.passed for note in record.trials if note.own] == [True, True]
    first = record.trials[0]
    assert first.elements == 560 and 0 < (first.max_abs_error or 0) < 3e-7  # against float64
    assert {"reference", "compile", "run"} <= set(record.seconds)
    assert record.provenance["trial_seeds"] == "1024,1025" and record.provenance["torch"]
    assert record.weak_task == [] and len(record.key) == 64


def test_a_right_class_passes_and_is_no_cheat(judge: Judge) -> None:
    record = judge(six())
    assert (record.error, record.official, record.strict) == ("", True, True)
    assert record.cheating == [] and record.clean


def test_a_kernel_without_the_weight_of_one_passes_the_suite_and_not_us(judge: Judge) -> None:
    record = judge(project(), "scaled")
    assert (record.official, record.strict) == (True, False)
    assert record.error.startswith("drawn 1: output 0: 560 of 560 elements break")


def test_a_class_without_the_parameters_is_judged_on_its_own_alone(judge: Judge) -> None:
    record = judge(six(), "scaled")
    assert (record.official, record.strict) == (True, True)
    assert record.findings["parameters-fixed"] >= 1


def test_two_runs_must_give_the_same_bits(judge: Judge) -> None:
    count = "static int calls = 0;\nat::Tensor add_custom"
    often = BINDING.replace("at::Tensor add_custom", count, 1)
    often = often.replace(
        "return result;", "if (calls++ % 2) result.mul_(1.0000003); return result;"
    )
    record = judge(six(binding=often))
    said = "two runs on the same inputs gave different outputs"
    assert said in [note.message for note in record.trials]
    assert record.official and not record.strict


def test_edge_values_count_for_precision_alone(judge: Judge) -> None:
    record = judge(project())
    kinds = {note.kind for note in record.trials}
    assert kinds == {"random", "more"} and record.precise


def test_wrong_values_say_how_far_off_they_are(judge: Judge) -> None:
    record = judge(project(), task="relu")
    assert (record.compiled, record.official, record.strict) == (True, False, False)
    assert "random 0: off by up to" in record.error and record.rung == Rung.RAN.value
    assert record.trials[0].mismatched > 0 and record.accuracy == 0
    assert [note.result for note in record.trials] == ["FAIL", *["not run"] * 6]  # one says enough
    whole = judge(project(), task="relu", limits=LIMITS.model_copy(update={"stop": False}))
    assert [note.result for note in whole.trials if note.own] == ["FAIL", "FAIL"]


def test_what_does_not_compile_says_so(judge: Judge) -> None:
    record = judge(project(**{" Add(": " NoSuchThing("}))
    assert (record.compiled, record.official, record.strict) == (False, False, False)
    assert record.error.startswith("compile-failed") and record.messages


def test_a_project_with_another_number_of_outputs_fails(judge: Judge) -> None:
    assert "output-count" in judge(project(), task="two").error


def test_values_computed_by_pytorch_are_officially_right_and_never_strictly(judge: Judge) -> None:
    record = judge(six(MODEL.replace("custom_ops_lib.add_custom(a, b)", "torch.add(a, b)")))
    assert (record.official, record.strict) == (True, False)
    assert "cheat-compute" in record.cheating
    hidden = MODEL.replace("custom_ops_lib.add_custom(a, b)", "eval('a' + chr(43) + 'b')")
    record = judge(six(hidden))
    assert (record.official, record.strict) == (True, False)
    assert "cheat-compute" in record.cheating and "no operator ran" in " ".join(record.messages)
    call = "EXEC_NPU_CMD(aclnnAddCustom, a, b, result);"
    record = judge(six(binding=BINDING.replace(call, "result = at::add(a, b);")))
    assert (record.official, record.strict) == (True, False)
    assert "cheat-binding" in record.cheating


def test_an_input_handed_back_is_a_cheat_in_python_and_in_the_binding(judge: Judge) -> None:
    call = "custom_ops_lib.add_custom(a, b)"  # the operator runs, and its result is dropped
    back = MODEL.replace(f"return {call}", f"{call}\n        return a.view(a.shape)")
    for model in (back, MODEL.replace("add_custom(", "hand_back(")):
        record = judge(six(model), task="same")
        assert (record.official, record.strict) == (True, False)
        assert "cheat-alias" in record.cheating
        assert "output 0 is an input, as it came" in " ".join(record.messages)
    record = judge(six(back), task="view")  # here the reference hands its input back, too
    assert (record.strict, record.cheating) == (True, [])


def test_an_input_that_is_overwritten_is_officially_right_and_never_strictly(judge: Judge) -> None:
    record = judge(six(MODEL.replace("add_custom(", "overwrite(")))
    assert (record.official, record.strict, record.cheating) == (True, False, [])
    assert "an input was overwritten" in record.error


# ---- times


def test_a_right_candidate_is_timed_and_its_verdict_stays(judge: Judge) -> None:
    plain = judge(project())
    assert (plain.time_us, plain.eager_us, plain.roof_us, plain.time_note) == (None, None, None, "")
    timed = LIMITS.model_copy(update={"timing": True})
    for candidate in (project(), six()):
        record = judge(candidate, limits=timed)
        assert record.time_us and record.eager_us and record.roof_us and record.time_note == ""
        assert record.eager_basis in ("model", "measured")
        moved = [int(record.provenance[name]) for name in ("cores", "read_bytes", "written_bytes")]
        assert moved[0] > 0 and moved[1] > moved[2] > 0  # two inputs, one output
        assert {span.unit for span in record.timeline} >= {"MTE2", "V", "MTE3"}
        assert all(0 <= span.begin <= span.end <= record.time_us for span in record.timeline)
        for name in ("compiled", "official", "strict", "precise", "clean", "findings", "trials"):
            assert getattr(record, name) == getattr(plain, name)


def test_a_time_from_a_sample_says_so_and_a_wrong_kernel_has_none(judge: Judge) -> None:
    timed = LIMITS.model_copy(update={"timing": True, "sample": 20})
    assert "extrapolated from a sample" in judge(project(), limits=timed).time_note
    wrong = judge(project(), task="relu", limits=timed)
    assert (wrong.time_us, wrong.eager_us, wrong.time_note) == (None, None, "")


def test_a_task_that_zeros_pass_is_called_weak(judge: Judge) -> None:
    record = judge(project(), task="zero")
    assert "a kernel that returns zeros" in record.weak_task and not record.official


# ---- references and writers


def test_a_reference_that_raises_is_nobodys_failure(judge: Judge) -> None:
    record = judge(project(), task="raises")
    assert record.skipped.startswith("task-raised: forward() raised RuntimeError")
    assert (record.compiled, record.official, record.error) == (None, None, "")


def test_a_reference_that_is_random_in_training_is_judged_in_eval_mode(judge: Judge) -> None:
    record = judge(project(), task="drop")
    assert record.official and record.provenance["mode"] == "eval"
    assert "two calls give different outputs" in record.provenance["note_0"]


def test_a_candidate_can_be_exported_as_a_project(root: Path, tmp_path: Path) -> None:
    suite = open_suite("folder", root, {"names": "add"})
    (item,) = suite.items()
    for number, candidate in enumerate((project(), six())):
        suite.export(item, candidate, tmp_path / str(number), "910B2")  # type: ignore[attr-defined]
        kernel = tmp_path / str(number) / "op_kernel" / "add_custom.cpp"
        assert kernel.read_text() == (PROJECT / "op_kernel" / "add_custom.cpp").read_text()


def test_a_candidate_lies_at_one_place_and_is_built_by_one_process_in_a_slot() -> None:
    folder, submission = place.unpack(project(), "910B2")
    assert (folder, submission) == place.unpack(project(), "910B2") and submission == ""
    assert folder != place.unpack(project(**{" Add(": " Sub("}), "910B2")[0]
    assert (folder / "project" / "op_kernel" / "add_custom.cpp").is_file()
    with place.slot() as first:
        (first / "left").touch()
        with place.slot() as second:
            assert second != first and not list(second.iterdir())
    with place.slot() as again:
        assert again == first and not list(again.iterdir())


def test_a_machine_without_room_leaves_no_verdict(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(candidate: Candidate, chip: str) -> None:
        raise NpusmithError("cache-unusable", "no room")

    monkeypatch.setattr(judging.place, "unpack", full)
    with pytest.raises(NpusmithError, match="no room"):
        judge(project(**{" Add(": " Mul("}))  # whose record is not there yet


def test_a_refusal_is_a_record(judge: Judge) -> None:
    refused = Candidate(format="project", files={}, writer="w", refusal="plan-axis: no way")
    record = judge(refused)
    assert (record.compiled, record.official, record.strict) == (False, False, False)
    assert record.error == "refused: plan-axis: no way"


def test_the_deterministic_writer_writes_what_passes(root: Path, written: Candidate) -> None:
    suite, writer = open_suite("folder", root, {"names": "relu"}), open_writer("plan:0")
    (item,) = suite.items()
    first, second = written, writer.write(suite.brief(item), 1, 0)
    assert first.digest == second.digest and not first.refusal
    record = suite.evaluate(item, first, LIMITS)
    assert (record.error, record.official, record.strict) == ("", True, True)
    assert record.provenance["other_shapes"].startswith("right: 8 sets")
    program = {name: text for name, text in first.files.items() if name.endswith(".tile.py")}
    assert len(program) == 1
    whole = {**program, "bindings.json": first.files["bindings.json"]}
    tile = Candidate(format="program", files=whole, writer="test")
    assert suite.evaluate(item, tile, LIMITS).strict


CANCELLED = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x[:, 0], torch.cat([x, -x], -1).cumsum(-1)[:, -1]
def get_inputs():
    return [0.1 * torch.randn(65, 32832)]
def get_init_inputs():
    return []
"""


def test_bounds_of_a_heavy_call_are_made_where_a_right_kernel_needs_them(tmp_path: Path) -> None:
    """All sums are 0 but for roundings, which PyTorch does not have: it adds up in float64."""
    (tmp_path / "cancelled.py").write_text(CANCELLED)
    suite, writer = open_suite("folder", tmp_path), open_writer("plan:0")
    (item,) = suite.items()
    record = suite.evaluate(item, writer.write(suite.brief(item), 0, 0), LIMITS)
    assert "random 0" in record.provenance["bounded"]
    assert (record.error, record.official, record.strict) == ("", True, True)


SIZED = {"size = aShape.GetShapeSize()": "size = std::min<int64_t>(aShape.GetShapeSize(), 560)"}
RANKED = {
    "Shape.GetDimNum() == 2": "Shape.GetDimNum() >= 1",
    "aShape.GetDim(0) * aShape.GetDim(1)": "aShape.GetShapeSize()",
}


@pytest.mark.parametrize(("changes", "code"), [(SIZED, ""), (RANKED, "rank-answered")])
def test_an_operator_that_serves_its_own_shapes_alone_is_not_strictly_right(
    root: Path, written: Candidate, changes: dict[str, str], code: str
) -> None:
    suite = open_suite("folder", root, {"names": "relu"})
    (item,) = suite.items()
    host = written.files["op_host/relu_custom.cpp"]
    for old, new in changes.items():
        assert old in host
        host = host.replace(old, new)
    wrong = written.model_copy(update={"files": written.files | {"op_host/relu_custom.cpp": host}})
    record = suite.evaluate(item, wrong, LIMITS)
    assert (record.official, record.strict, record.precise) == (True, False, False)
    assert record.provenance["other_shapes"].startswith("wrong: ")
    assert record.error.startswith("at other shapes: ") and (not code or code in record.findings)
    assert record.clean is not bool(code)
    theirs = wrong.model_copy(update={"dynamic": False})  # it does not mean to serve others
    assert suite.evaluate(item, theirs, LIMITS).strict


def test_responses_on_disk_are_found_by_item_and_sample(root: Path, tmp_path: Path) -> None:
    shutil.copytree(PROJECT, tmp_path / "add" / "0")
    (tmp_path / "add" / "1.txt").write_text(next(iter(six().files.values())))
    (tmp_path / "add" / "2.json").write_text('{"sources": []}')
    suite, writer = open_suite("folder", root, {"names": "add"}), open_writer(f"folder:{tmp_path}")
    (item,) = suite.items()
    found = [writer.write(suite.brief(item), sample, 0) for sample in range(3)]
    assert [item.format for item in found] == ["project", "six", "json"]
    assert found[0].digest == project().digest
    with pytest.raises(NpusmithError, match="add has no response number 3") as caught:
        writer.write(suite.brief(item), 3, 0)
    assert caught.value.code == "file-missing"


# ---- PCL's NPUKernelBench: the suite's own Python, a candidate in the place of the answer

MODULE = """import torch
import kernel_gen_ops
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return kernel_gen_ops.add_custom(a, b)
"""
INPUTS = """import torch
def get_init_inputs(param, device=None):
    return []
def get_inputs(param, device=None):
    return [torch.randn(eval(param["shape"])), torch.randn(eval(param["shape"]))]
"""


@pytest.fixture(scope="module")
def pcl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with one operator of two cases."""
    root = tmp_path_factory.mktemp("pcl")
    folder = root / "tasks" / "level1" / "Math" / "AddCustom"
    for name in ("validation", "question/op_host"):
        (folder / name).mkdir(parents=True)
    for name in ("kernel_generator", "framework"):
        (root / name).mkdir()
    binding = BINDING.replace("aclnnAddCustom", "aclnnCustomOp")
    binding = binding.replace('m.def("add_custom"', 'm.def("custom_pybind_api"')
    texts = {
        "module.py": MODULE,
        "prepare_inputs.py": INPUTS,
        "pybind.cpp": binding,
        "test_cases.csv": "case_id;shape;dtype\n0;[4, 100];float32\n1;[7, 33];float32\n",
    }
    for name, text in texts.items():
        (folder / "validation" / name).write_text(text)
    host = (PROJECT / "op_host" / "add_custom.cpp").read_text()
    header = (PROJECT / "op_host" / "add_custom_tiling.h").read_text()
    host = host.replace('#include "add_custom_tiling.h"', header.replace("#pragma once", ""))
    (folder / "question" / "op_host" / "add_custom.cpp").write_text(host)
    return root


def kernel_only(change: tuple[str, str] = ("", "")) -> Candidate:
    kernel = (PROJECT / "op_kernel" / "add_custom.cpp").read_text()
    assert "GM_ADDR workspace, GM_ADDR tiling" in kernel
    kernel = kernel.replace("GM_ADDR workspace, GM_ADDR tiling", "GM_ADDR workspace")
    text = f"I think...\n<kernel_impl>\n```cpp\n{kernel.replace(*change)}\n```\n</kernel_impl>\n"
    return Candidate(format="kernel_only", files={"0.txt": text}, writer="test")


def test_a_kernel_takes_the_place_of_the_suites_answer(pcl: Path) -> None:
    suite = open_suite("npukernelbench", pcl, {"shapes": "dynamic", "cases": "0"})
    (item,) = suite.items()
    limits = Limits(seconds=60, trials=2, seed=1030, timing=True)
    record = suite.evaluate(item, kernel_only(), limits)
    assert (record.error, record.official, record.strict, record.clean) == ("", True, True, True)
    assert record.provenance["seeds"] == "6 to 7" and record.time_note == "case 0 of 2"
    assert record.time_us and record.eager_us and record.timeline
    names = [note.name for note in record.trials]  # every case, on every seed
    assert record.accuracy == 1
    assert names[:4] == ["case 0", "case 1", "case 0, seed 7", "case 1, seed 7"]
    edges = ("signed", "near one", "negatives", "inf", "nan")  # of the first case; not the suite's
    assert names[4:] == [f"case 0, {name}" for name in edges]
    record = suite.evaluate(item, kernel_only((" Add(z", " Sub(z")), limits)
    assert (record.compiled, record.official, record.accuracy) == (True, False, 0)
    assert suite.evaluate(item, project(), limits).strict
    empty = Candidate(format="kernel_only", files={"0.txt": "I cannot."}, writer="test")
    assert suite.evaluate(item, empty, limits).error.startswith("format-part: the response has no")


def test_an_operator_is_judged_without_the_suites_binding_and_class(pcl: Path) -> None:
    suite = open_suite("npukernelbench", pcl, {"shapes": "static", "cases": "0", "eager": "false"})
    item = next(item for item in suite.items() if item.name.endswith("case1"))
    limits = Limits(seconds=60, trials=1, timing=True)
    record = suite.evaluate_alone(item, project(), limits)
    assert (record.error, record.official, record.clean) == ("", True, True)
    assert record.time_us and record.eager_us is None and "no task was captured" in record.time_note
    assert record.provenance["written_bytes"] == str(7 * 33 * 4)
    files = {name: text.replace("Add(z", "Sub(z") for name, text in project().files.items()}
    wrong = project().model_copy(update={"files": files})
    assert suite.evaluate_alone(item, wrong, limits).official is False


# ---- hostile candidates


def hostile(line: str) -> Candidate:
    return six(f"import os, sys, time\n{line}\n{MODEL}")


def test_a_fork_bomb_ends_with_its_box(judge: Judge) -> None:
    bomb = "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    record = judge(hostile(bomb), limits=Limits(seconds=2, memory_mb=2048, trials=2))
    assert (record.compiled, record.official, record.strict) == (True, False, False)
    assert "had not ended" in record.error


def test_a_candidate_that_fills_the_disk_is_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TorchSuite, "plan_of", small_disk)
    suite = open_suite("folder", root, {"names": "add"})
    (item,) = suite.items()
    # the one folder that a class may write to
    fill = (
        "import tempfile\nn = 0\nwhile True:\n"
        "    open(f'{tempfile.gettempdir()}/f{n}', 'wb').write(bytes(1 << 20)); n += 1"
    )
    record = suite.evaluate(item, hostile(fill), LIMITS)
    assert (record.official, record.strict) == (False, False)
    assert record.error.startswith("the candidate filled the disk")


def small_disk(self: TorchSuite, item: Item, order: judging.Order) -> judging.Plan:
    return judging.Plan(order, self.rule, self.rule_name, disk_bytes=64 << 20)


def test_a_gigabyte_of_output_is_dropped(judge: Judge) -> None:
    shout = "row = b'x' * (1 << 20)\nfor _ in range(1024):\n    os.write(1, row)"
    record = judge(hostile(shout))
    assert (record.error, record.official) == ("", True)
    assert len(record.model_dump_json()) < 20_000


def test_the_suite_cannot_be_written(judge: Judge, root: Path) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    write = f"open({str(root / 'add.py')!r}, 'w').write('class Model: pass')"
    record = judge(hostile(write))
    assert not record.official and record.error
    record = judge(hostile(f"os.remove({str(root / 'add.py')!r})"))
    assert not record.official and record.error
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_the_reference_and_its_outputs_cannot_be_read(judge: Judge, root: Path) -> None:
    look = f"open({str(root / 'add.py')!r}).read()"
    assert not judge(hostile(look)).official
    peek = (  # nothing that the process holds leads to what the judge compares with
        "frame, held = sys._getframe(), ''\n"
        "while frame:\n    held += repr(frame.f_locals.get('orders', '')); frame = frame.f_back\n"
        "words = ('output', 'golden', 'reference', 'trials', '_out', '_wide')\n"
        "assert held and not [word for word in words if word in held], held"
    )
    record = judge(hostile(peek))
    assert record.official, record.error


def test_endless_and_greedy_candidates_fail(judge: Judge) -> None:
    limits = Limits(seconds=2, memory_mb=1024, trials=2)
    assert "had not ended" in judge(hostile("time.sleep(100)"), limits=limits).error
    record = judge(hostile("held = [bytes(1 << 28) for _ in range(99)]"), limits=limits)
    assert not record.official and "memory" in record.error.lower()


def test_a_candidate_that_ends_early_or_writes_a_record_fails(judge: Judge) -> None:
    record = judge(hostile("os._exit(0)"))
    assert not record.official and "kernel-crash" in record.error
    record = judge(hostile("open('result.json', 'w').write('{}')"))  # there is nothing to write to
    assert not record.official and "PermissionError" in record.error


def test_files_with_bad_names_and_odd_formats_are_records(judge: Judge) -> None:
    bad = Candidate(format="project", files={"../x": ""}, writer="test")
    assert judge(bad).error.startswith("format-path")
    odd = Candidate(format="kernel_only", files={"a": ""}, writer="test")
    assert judge(odd).error.startswith("format-part")
    torn = Candidate(format="json", files={"a.json": json.dumps([1])}, writer="test")
    assert judge(torn).error.startswith("format-")
