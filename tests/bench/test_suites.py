"""Reading suites: which items there are, why some are skipped, what a writer is given."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from npusmith.bench.model import Item
from npusmith.bench.suites import NAMES, open_suite, scale, sizes
from npusmith.bench.suites.cannbench import CannBench, read_proto
from npusmith.bench.suites.cannvalues import draw
from npusmith.bench.suites.kernelbench import KernelBench
from npusmith.bench.suites.npukernelbench import NpuKernelBench
from npusmith.bench.suites.options import SuiteOptions
from npusmith.bench.suites.submit import first_block, write_tree
from npusmith.bench.suites.texts import read_facts, strip_imports
from npusmith.errors import NpusmithError
from npusmith.open_writer import open_writer
from npusmith.task import files, rules

RELU = """import torch
import torch_npu
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
batch_size = {rows}
dim = 64
def get_inputs():
    return [torch.rand(batch_size, dim)]
def get_init_inputs():
    return []
"""
NPU = RELU.replace("torch.relu(x)", "torch_npu.npu_swiglu(x)").format(rows=4)
GROUPS = """import json, os, torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.abs(x)
def get_input_groups():
    path = os.path.join(os.path.dirname(__file__), "1_abs.json")
    return [[torch.randn(row["shape"])] for row in map(json.loads, open(path))]
def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def multi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in MultiKernelBench's form, of our own writing."""
    root = tmp_path_factory.mktemp("multi")
    (root / "dataset.py").write_text("dataset = {}\n")
    texts = {
        "activation/huge.py": RELU.format(rows="4096 * 1024"),
        "activation/relu.py": RELU.format(rows=4),
        "fuse/missing.py": RELU.format(rows=4).replace("torch_npu", "no_such_package"),
        "fuse/npu_only.py": NPU,
        "fuse/torn.py": "class Model(:\n",
        "npukernelbench_level0/1_abs.py": GROUPS,
    }
    for name, text in texts.items():
        path = root / "reference" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shapes = ([3], [1000, 1000], [2, 2], [])
    lines = "".join(json.dumps({"dtype": "float32", "shape": shape}) + "\n" for shape in shapes)
    (root / "reference" / "npukernelbench_level0" / "1_abs.json").write_text(lines)
    return root


def listed(root: Path, name: str = "multikernelbench", **options: str) -> dict[str, Item]:
    return {item.name: item for item in open_suite(name, root, options).items()}


# ---- which items there are


def test_every_task_is_listed_and_says_why_it_is_skipped(multi: Path) -> None:
    items = listed(multi, scale_mb="0")
    assert list(items) == [
        *("activation/huge", "activation/relu", "fuse/missing", "fuse/npu_only", "fuse/torn"),
        "npukernelbench_level0/1_abs",
    ]
    skipped = {name: item.skipped for name, item in items.items() if item.skipped}
    assert skipped == {
        "activation/huge": "1074 MB of inputs",
        "fuse/missing": "imports no_such_package, which is not installed",
        "fuse/npu_only": "needs torch_npu.npu_swiglu, which only an NPU has",
        "fuse/torn": skipped["fuse/torn"],
    }
    assert skipped["fuse/torn"].startswith("torn.py is not Python")
    relu, groups = items["activation/relu"], items["npukernelbench_level0/1_abs"]
    assert (relu.category, relu.level, relu.dtype) == ("activation", "", "float32")
    assert (groups.category, groups.level) == ("npukernelbench_level0", "0")
    assert relu.source == "reference/activation/relu.py"


def test_options_choose_categories_names_and_levels(multi: Path) -> None:
    chosen = list(listed(multi, categories="activation"))
    assert chosen == ["activation/huge@40MB", "activation/relu"]  # reduced where nobody says
    assert list(listed(multi, names="relu,1_abs")) == [
        "activation/relu", "npukernelbench_level0/1_abs",
    ]  # fmt: skip
    assert list(listed(multi, levels="0")) == ["npukernelbench_level0/1_abs"]


def test_scaled_items_are_other_items_and_say_so(multi: Path) -> None:
    plain = listed(multi, input_mb="2", scale_mb="0")
    assert plain["npukernelbench_level0/1_abs"].skipped == "4 MB of inputs in 4 groups"
    items = listed(multi, scale_mb="2")
    huge = items["activation/huge@2MB"]
    assert huge.skipped == "" and huge.digest != plain["activation/huge"].digest
    suite = open_suite("multikernelbench", multi, {"scale_mb": "2"})
    brief = suite.brief(huge)
    assert "batch_size = 64 * 64\n" in brief.reference and "dim = 64" in brief.reference
    assert brief.path is not None and brief.path.read_text() == brief.reference
    groups = suite.brief(items["npukernelbench_level0/1_abs@2MB"]).path
    assert groups is not None
    kept = [json.loads(line)["shape"] for line in groups.with_suffix(".json").open()]
    assert kept == [[3], [2, 2], []]
    assert "activation/relu" in items  # small enough as it is


def test_a_changed_task_is_another_item(multi: Path, tmp_path: Path) -> None:
    before = listed(multi)["activation/relu"].digest
    (tmp_path / "reference" / "activation").mkdir(parents=True)
    (tmp_path / "dataset.py").write_text("")
    path = tmp_path / "reference" / "activation" / "relu.py"
    path.write_text(RELU.format(rows=4))
    assert listed(tmp_path)["activation/relu"].digest == before
    path.write_text(RELU.format(rows=5))
    assert listed(tmp_path)["activation/relu"].digest != before


def test_the_reader_holds_one_batch_at_a_time(tmp_path: Path) -> None:
    for number in range(3 * sizes.BATCH):
        (tmp_path / f"{number:03}.py").write_text(RELU.format(rows=4))
    suite = open_suite("folder", tmp_path)
    items = suite.items()
    assert next(items).name == "000"
    (tmp_path / "040.py").write_text("class Model(:\n")  # not read yet
    assert sum(bool(item.skipped) for item in items) == 1


# ---- what is no suite


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_is_no_checkout_is_refused_with_what_was_seen(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(NpusmithError) as caught:
        open_suite(name, tmp_path)
    assert caught.value.code == "file-missing" and "holiday.jpg" in caught.value.seen
    with pytest.raises(NpusmithError) as caught:
        open_suite(name, tmp_path / "nowhere")
    assert caught.value.code == "file-missing" and caught.value.seen == "no such folder"


@pytest.mark.parametrize(
    ("name", "there", "missing"),
    [
        ("multikernelbench", "dataset.py", "reference"),
        ("npukernelbench", "tasks/level1/Math/Add/validation/module.py", "kernel_generator"),
        ("kernelbench", "KernelBench/level1/1_a.py", "level2"),
        ("cann-bench", "tasks/level1/exp/golden.py", "tasks/level1"),
    ],
)
def test_half_a_checkout_is_refused(name: str, there: str, missing: str, tmp_path: Path) -> None:
    path = tmp_path / there
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RELU.format(rows=4))
    with pytest.raises(NpusmithError) as caught:
        open_suite(name, tmp_path)
    assert caught.value.code == "file-missing" and missing in caught.value.message


def test_unknown_suites_options_and_writers_are_refused(tmp_path: Path) -> None:
    for call in (
        lambda: open_suite("nobench", tmp_path),
        lambda: open_suite("folder", tmp_path, {"scale_mb": "much"}),
        lambda: open_suite("folder", tmp_path, {"colour": "red"}),
        lambda: open_writer("poet"),
    ):
        with pytest.raises(NpusmithError) as caught:
            call()
        assert caught.value.code == "usage" and caught.value.seen
    with pytest.raises(NpusmithError, match="is no folder"):
        open_writer(f"folder:{tmp_path / 'nowhere'}")


# ---- texts


def test_stubbed_imports_go_and_lines_keep_their_numbers() -> None:
    text = "import torch\nif True:\n    from torch_npu.contrib import (\n        a,\n    )\nx = 1\n"
    assert strip_imports(text) == "import torch\nif True:\n    pass\n\n\nx = 1\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("torch_npu.npu_iou(x)", "needs torch_npu.npu_iou, which only an NPU has"),
        ("torch_npu.npu.synchronize()", ""),
        ("# torch_npu.npu_iou(x)", ""),
        ("import no_such_thing", "imports no_such_thing, which is not installed"),
        ("import torch, json, math", ""),
    ],
)
def test_what_a_text_needs_is_read_without_running_it(line: str, why: str) -> None:
    assert read_facts(f"import torch_npu\n{line}\n", "a.py").why == why


# ---- smaller shapes


def shrunk(text: str, most: int) -> tuple[str, list[str], int]:
    def measure(fresh: str) -> scale.Measure:
        space: dict[str, object] = {}
        exec(fresh, space)
        shape = space["get_inputs"]()  # type: ignore[operator]
        if space.get("wanted", shape[-1]) != shape[-1]:
            raise ValueError("the reference wants another length")
        weights = 4 * math.prod(space["get_init_inputs"]())  # type: ignore[operator]
        return scale.Measure(4 * math.prod(shape), (shape,), weights)

    return scale.reduce_sizes(ast.parse(text), text, most, measure)


def task(values: str, shape: str, init: str = "") -> str:
    return (
        f"{values}\ndef get_inputs():\n    return ({shape})\n"
        f"def get_init_inputs():\n    return [{init}]\n"
    )


def test_only_sizes_of_the_inputs_shrink() -> None:
    text = task("rows = 256\nwide = 96\nkept = 16\nwanted = 96", "rows, kept, wide", "kept")
    _, changes, size = shrunk(text, 500_000)
    assert changes == ["rows 256 -> 64"] and size == 4 * 64 * 16 * 96


def test_rows_stay_longer_than_the_chip_holds_and_end_where_they_ended() -> None:
    fresh, changes, size = shrunk(task("rows = 4096\nwide = 65535", "rows, wide"), 30_000_000)
    assert changes == ["rows 4096 -> 128", "wide 65535 -> 49215"] and size < 30_000_000
    assert 49215 % 64 == 65535 % 64 and 49215 > 192 * 1024 // 4
    assert "rows = 128\nwide = 49215\n" in fresh


def test_sizes_that_must_be_equal_shrink_together() -> None:
    text = task("rows = 8192\nwide = 8192", "rows, wide").replace(
        "    return (rows, wide)", "    assert rows == wide\n    return (rows, wide)"
    )
    _, changes, _ = shrunk(text, 5_000_000)
    assert changes == ["rows 8192 -> 1024", "wide 8192 -> 1024"]


@pytest.mark.parametrize(("bound", "left"), [(8192, 4096), (1000, 1000)])
def test_bounds_of_indices_shrink_with_what_they_index_and_only_so(bound: int, left: int) -> None:
    """Tensors without values do not say that an index is too large."""
    drawn = "import random as torch\ntorch.randint = lambda low, high, size=(): 0"
    text = task(drawn, f"8192 + torch.randint(0, {bound} - 1, (4000,)), 10")
    fresh, _, _ = shrunk(text, 200_000)
    assert f"4096 + torch.randint(0, {left} - 1, (4000,)), 10" in fresh


def test_a_model_that_fits_no_machine_shrinks_with_its_inputs() -> None:
    """A parameter of the model's own that has a number's name is not that number."""
    model = "class Model:\n    def __init__(self, wide, out):\n        self.sizes = (wide, out)\n"
    text = task("rows = 64\nwide = 16384\nout = 32768\nkept = 9", "rows, wide", "wide, out, kept")
    fresh, changes, size = shrunk(text + model, 10_000_000)
    assert changes == ["wide 16384 -> 9216", "out 32768 -> 512"] and size == 4 * 64 * 9216
    assert "kept = 9" in fresh  # weights would not become much less
    small = task("rows = 64\nwide = 8192\nout = 1024", "rows, wide", "wide, out")
    assert shrunk(small + model, 10_000_000)[1] == []
    read = text + model.replace("(wide, out)\n", "(wide, out)\n        self.out = [out, kept][0]\n")
    assert shrunk(read, 10_000_000)[1] == changes  # of the class's own it is the parameter


def test_what_cannot_be_kept_is_given_up_at_the_end() -> None:
    _, changes, size = shrunk(task("a = 100\nb = 100", "a, b"), 400)
    assert size <= 400 and len(changes) == 2


def test_the_smallest_groups_are_kept_in_their_order() -> None:
    assert scale.keep_groups([50, 10, 30, 20], 60) == [1, 2, 3]
    assert scale.keep_groups([50], 10) == []


# ---- rules


def tensors(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    ("golden", "said"),
    [
        (
            tensors(1.0, 3.5, dtype=torch.float64),
            "; PyTorch's own values from float64 fail so, too",
        ),
        (tensors(1.0, 2.00001, dtype=torch.float64), ""),
        (tensors(1.0, dtype=torch.float64), ""),
        (None, ""),
    ],
)
def test_a_task_without_a_sure_answer_is_said_to_have_none(
    golden: torch.Tensor | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training mode with two samples in a batch norm: rounding decides about everything."""
    monkeypatch.setattr(files, "get", lambda item, folder: item)
    monkeypatch.setattr(files, "value", lambda item: item)
    wide = None if golden is None else [golden]
    trial = SimpleNamespace(wanted=[tensors(1.0, 2.0)], wide=wide, given=(), folder="")

    def found(value: float) -> str:
        pair = SimpleNamespace(trial=trial, found=[tensors(1.0, value)])
        return rules.apply(rules.kernelbench, pair)  # type: ignore[arg-type]

    assert found(2.0) == ""
    assert found(2.5).partition(": the task")[0].endswith(said or "allows")
    assert (": the task has no sure answer" in found(2.5)) == bool(said)


@pytest.mark.parametrize(
    ("wanted", "found", "multi_says", "kernel_says"),
    [
        (tensors(1.0), tensors(1.00019), True, True),
        (tensors(1.0), tensors(1.00021), False, False),
        (tensors(1.0, dtype=torch.float16), tensors(1.005, dtype=torch.float16), False, True),
        (tensors(1.0), tensors(1.0, 1.0), False, False),
        (tensors(1.0), tensors(1.0, dtype=torch.float64), False, False),
        (torch.tensor([True]), torch.tensor([True]), True, True),
        (torch.tensor([True]), torch.tensor([False]), False, False),
        ([tensors(1.0)], [tensors(1.0), tensors(2.0)], False, False),
        ((tensors(1.0), 3), (tensors(1.0), 3), True, True),
        ((tensors(1.0), 3), (tensors(1.0), 4), False, False),
        (tensors(float("nan")), tensors(float("nan")), False, False),
    ],
)
def test_published_rules(
    wanted: object, found: object, multi_says: bool, kernel_says: bool
) -> None:
    assert (not rules.multikernelbench(wanted, found)) is multi_says
    assert (not rules.kernelbench(wanted, found)) is kernel_says


def test_kernelbench_draws_its_trials_under_its_own_seeds(tmp_path: Path) -> None:
    for level in (1, 2, 3):
        (tmp_path / "KernelBench" / f"level{level}").mkdir(parents=True)
    for number in (10, 2):
        path = tmp_path / "KernelBench" / "level1" / f"{number}_relu.py"
        path.write_text(RELU.format(rows=4))
    suite = KernelBench(tmp_path, SuiteOptions())
    assert [entry.name for entry in suite.entries()] == ["level1/2_relu", "level1/10_relu"]
    torch.manual_seed(42)
    own = tuple(int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(3))
    assert suite.trial_seeds(42, 3) == own


# ---- CANN-bench

PROTO = """# a comment
operator:
  name: Peak
  category: Reduction
  description: 'the largest'
  precision_thresholds:
    float16: 0.01   # wide
  attrs:
  - name: dim
    type: int64
  inputs:
  - name: x
    dtype:
    - float32
  outputs:
  - name: values
    dtype:
    - float32
  - name: index
    compare: false
    index_gather:
      input: x
      dim_attr: dim
  schema: peak(Tensor x, int dim=0) -> (Tensor values, Tensor index)
"""
GOLDEN = """import torch
def peak(x: torch.Tensor, dim: int = 0):
    return torch.max(x, dim=dim)
def get_input(x, dim=0, **rest):
    return [x + 1]
"""
CASES = """operator,case_id,input_shape,dtype,attrs,value_range,note
Peak,1,"[[4, 5]]","[""float32""]","{""dim"": 1}","[-1, 1]",a
Peak,2,[100],"[""float16""]","{""dim"": 0}","[""-inf"", ""inf""]",b
Peak,3,"[[9000, 9000]]","[""float32""]",{},"[-1, 1]",c
"""


@pytest.fixture
def cann(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "level2" / "peak"
    folder.mkdir(parents=True)
    for name, text in {"proto.yaml": PROTO, "golden.py": GOLDEN, "cases.csv": CASES}.items():
        (folder / name).write_text(text)
    (folder / "desc.md").write_text("# Peak\n")
    times = {"level2": {"peak": {"1": {"baseline_perf_us": 9.5, "t_hw_us": 1.25}}}}
    (tmp_path / "tasks" / "metadata").mkdir()
    (tmp_path / "tasks" / "metadata" / "910b2.json").write_text(json.dumps(times))
    return tmp_path


def test_an_item_of_cann_bench_is_a_case(cann: Path) -> None:
    assert list(listed(cann, "cann-bench")) == ["level2/peak/1"]
    items = listed(cann, "cann-bench", cases="0")
    assert [(item.name, item.dtype, item.skipped) for item in items.values()] == [
        ("level2/peak/1", "float32", ""),
        ("level2/peak/2", "float16", ""),
        ("level2/peak/3", "float32", "324 MB of inputs"),
    ]
    suite = CannBench(cann, SuiteOptions())
    brief = suite.brief(items["level2/peak/1"])
    assert brief.description == "# Peak\n" and items["level2/peak/1"].category == "Reduction"
    space: dict[str, object] = {}
    exec(brief.reference, space)
    (x,) = space["get_inputs"]()  # type: ignore[operator]
    assert x.shape == (4, 5) and x.min() >= 0  # get_input has moved [-1, 1] by one
    values, index = space["Model"]()(x)  # type: ignore[operator]
    assert torch.equal(values, x.max(dim=1).values) and index.shape == (4,)


def test_proto_is_read_in_the_form_that_the_suite_writes(cann: Path) -> None:
    proto = read_proto(cann / "tasks" / "level2" / "peak" / "proto.yaml")
    assert (proto.name, proto.function, proto.inputs) == ("Peak", "peak", ["x"])
    assert proto.thresholds == {"float16": 0.01}
    assert proto.outputs[0]["name"] == "values"
    assert (proto.outputs[1]["compare"], proto.outputs[1]["input"]) == ("false", "x")


def test_indices_may_differ_where_they_point_at_the_same_value() -> None:
    outputs = [{"name": "i", "compare": "false", "input": "x", "dim_attr": "dim"}]
    rule = rules.cannbench({}, outputs, ["x"], {"dim": 1})
    x = torch.tensor([[3.0, 3.0, 1.0]])
    want = torch.tensor([0])
    assert rule(want, torch.tensor([1]), None, [x]) == ""
    assert "other values" in rule(want, torch.tensor([2]), None, [x])
    assert "outside" in rule(want, torch.tensor([3]), None, [x])


@pytest.mark.parametrize(
    ("error", "thresholds", "passes"),
    [
        (1e-4, {}, True),
        (2e-4, {}, False),  # the mean must be below 2^-13
        (2e-4, {"float32": 0.005}, True),
        (6e-3, {"float32": 0.005}, False),
        (0.0, {"float32": 0}, True),
        (1e-6, {"float32": 0}, False),
    ],
)
def test_thresholds_of_cann_bench(error: float, thresholds: dict[str, float], passes: bool) -> None:
    rule = rules.cannbench(thresholds, [], [], {})
    want = torch.ones(100)
    assert (not rule(want, want * (1 + error), want.double(), [])) is passes


def test_ranges_of_cann_bench() -> None:
    torch.manual_seed(0)
    assert draw(None, "float32", None) is None
    assert draw([50], "int32", [3, 3]).tolist() == [3] * 50
    assert 0.3 < draw([1000], "float32", ["nan", "nan"]).isnan().float().mean() < 0.7
    assert draw([100], "float16", ["-inf", "inf"]).isinf().sum() == 10
    assert [item.shape for item in draw([[2], [3]], ["float32"], [0, 1])] == [(2,), (3,)]
    assert draw([8], "bool", [1, 1]).all()


# ---- PCL's NPUKernelBench

GENERATOR = '''
import textwrap
class Gen:
    def generate_answer_template(self, kernel_impl="", host_impl=""):
        if config.kernel_only_mode:
            return textwrap.dedent(f"""
<kernel_impl>
```cpp
{cpp_code}
```
</kernel_impl>
""")
        else:
            return textwrap.dedent(f"""
== op_host/{self.task_obj.kernel_name}.cpp ==
{host_impl}
{self.task_obj.op_name}
{kernel_impl}
""")
    def build_code_generation_prompts(self):
        user_prompt = textwrap.dedent(f"""
Write it.
{code_requirement}
{example_content}
{self.enhance_api_description()}
{self.test_case_data}
{self.generate_answer_template(*template_contents)}
        """)
'''


@pytest.fixture
def pcl(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "level1" / "Math" / "AddCustom"
    for name in ("validation", "question/op_host", "question/op_kernel"):
        (folder / name).mkdir(parents=True)
    (folder / "api_desc.md").write_text("# Add\n## Function Description\nadds\n")
    entry = "void add_custom(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {}"
    (folder / "question" / "op_kernel" / "add_custom.cpp").write_text(entry)
    (folder / "question" / "op_host" / "add_custom.cpp").write_text("HOST")
    module = "import torch\nimport torch_npu\nclass Model(torch.nn.Module):\n"
    module += "    def forward(self, x):\n        return x + x\n"
    (folder / "validation" / "module.py").write_text(module)
    inputs = "import torch\ndef get_init_inputs(param, device=None):\n    return []\n"
    inputs += "def get_inputs(param, device=None):\n    return [torch.ones(eval(param['shape']))]\n"
    (folder / "validation" / "prepare_inputs.py").write_text(inputs)
    (folder / "validation" / "pybind.cpp").write_text("")
    table = "case_id;shape;dtype\n0;[48, 10];float16\n1;[2];float32\n2;[9000, 9000];float32\n"
    (folder / "validation" / "test_cases.csv").write_text(table)
    home = tmp_path / "kernel_generator"
    home.mkdir()
    (tmp_path / "framework").mkdir()
    (home / "generate_codes_with_sft.py").write_text(GENERATOR)
    for name in ("kernel_only", "full"):
        rest = f'{name.upper()}_CODE_REQUIREMENT = "1. {name}"\n{name.upper()}_EXAMPLE_CODE = "E"\n'
        (home / f"{name}_sft_sample.py").write_text(rest)
    return tmp_path


def test_static_mode_has_an_item_for_each_case_and_dynamic_mode_one(pcl: Path) -> None:
    assert list(listed(pcl, "npukernelbench")) == ["level1/Math/AddCustom/case0"]
    items = list(listed(pcl, "npukernelbench", cases="0").values())
    assert [(item.name[-5:], item.dtype, item.skipped) for item in items] == [
        ("case0", "float16", ""), ("case1", "float32", ""),
        ("case2", "float32", "324 MB of inputs"),
    ]  # fmt: skip
    (whole,) = listed(pcl, "npukernelbench", shapes="dynamic", cases="2").values()
    assert (whole.name, whole.dtype) == ("level1/Math/AddCustom", "mixed")


def test_the_prompt_is_made_of_the_checkouts_own_words(pcl: Path) -> None:
    suite = NpuKernelBench(pcl, SuiteOptions())
    brief = suite.brief(next(suite.items()))
    assert brief.operator == "AddCustom" and brief.formats == ("kernel_only", "project")
    lines = brief.prompt.split("\n")
    assert lines[1:4] == ["Write it.", "1. kernel_only", "E"]
    assert "## Supported Data Types\n- float16\n\n## Function Description" in brief.prompt
    assert "case_id           0\nshape      [48, 10]\ndtype       float16\nName: 0" in brief.prompt
    assert "void add_custom(GM_ADDR x, GM_ADDR workspace) {}" in brief.prompt
    full = NpuKernelBench(pcl, SuiteOptions(response="full", shapes="dynamic"))
    text = full.brief(next(full.items())).prompt
    assert "op_host/add_custom.cpp" in text and "HOST\nAddCustom\n" in text
    assert "\n2        2  [9000, 9000]  float32\n" in text


def test_the_first_case_is_a_task_that_can_be_captured(pcl: Path) -> None:
    suite = NpuKernelBench(pcl, SuiteOptions())
    path = suite.brief(next(suite.items())).path
    assert path is not None and path.stem == "add_custom"
    space: dict[str, object] = {}
    exec(path.read_text(), space)
    assert space["get_inputs"]()[0].shape == (48, 10)  # type: ignore[operator]


# ---- candidates as files


def test_the_first_fenced_block_is_the_answer() -> None:
    assert first_block('Here:\n```json\n{"a": 1}\n```\n```python\nx\n```') == '{"a": 1}'
    assert first_block("x = 1\n") == "x = 1\n"


@pytest.mark.parametrize("name", ["../a.cpp", "/etc/a", "a//b", "a/../b", "", "x\ny", "a\\b"])
def test_files_of_a_candidate_stay_below_their_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(NpusmithError) as caught:
        write_tree({name: "text"}, tmp_path / "project")
    assert caught.value.code == "format-path" and not (tmp_path / "project").exists()
