"""Trials on disk: random, edge, shape and group sets, their references and goldens."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from npusmith.errors import TaskError
from npusmith.task import shapes, wire
from npusmith.task.load import open_task
from npusmith.task.trials import SEEDS, Sets, check_files, prepare, read_manifest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def norm(tmp_path_factory):
    """rms_norm: bfloat16, a parameter, a fixed last axis."""
    return prepare(open_task(EXAMPLES / "rms_norm.py"), tmp_path_factory.mktemp("norm"))


@pytest.fixture(scope="module")
def hinge(tmp_path_factory):
    """hinge_loss: two inputs that broadcast, a 0-dim output."""
    return prepare(open_task(EXAMPLES / "hinge_loss.py"), tmp_path_factory.mktemp("hinge"))


def by_name(prepared, kind: str):
    return {trial.name: trial for trial in prepared.trials if trial.kind == kind}


def test_there_are_five_random_trials_under_their_own_seeds(norm):
    random = [trial for trial in norm.trials if trial.kind == "random"]
    assert [trial.seed for trial in random] == list(SEEDS)
    first, second = (np.array(trial.inputs[0]) for trial in random[:2])
    assert first.dtype == ml_dtypes.bfloat16 and first.shape == (256, 2048)
    assert not np.array_equal(first, second)


def test_preparing_again_gives_the_same_numbers(norm, tmp_path):
    again = prepare(norm.task, tmp_path, sets=Sets(edges=False, shapes=False))
    for one, two in zip(norm.trials, again.trials, strict=False):
        assert one.name == two.name
        assert one.inputs[0].tobytes() == two.inputs[0].tobytes()
    assert again.graph.nodes == norm.graph.nodes
    assert norm.graph.symbolic == () and again.graph.symbolic is None  # at no other shapes
    weights = (item.parameters["weight"].tobytes() for item in (norm, again))
    assert len(set(weights)) == 1


def test_the_golden_is_the_formula_in_float64(norm):
    for trial in (item for item in norm.trials if item.kind == "random"):
        weight = norm.held(trial)["weight"].astype(np.float64)
        x = trial.inputs[0].astype(np.float64)
        exact = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight
        assert trial.goldens[0].dtype == np.float64
        # the casts to float32 and bfloat16 in the module's text are widened too
        np.testing.assert_allclose(trial.goldens[0], exact, rtol=1e-12)
        reference = trial.references[0]
        assert reference.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(reference.astype(np.float64), exact, rtol=2e-2, atol=1e-3)


def test_arrays_are_mapped_read_only(norm):
    array = norm.trials[0].inputs[0]
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_edge_sets_hold_what_they_say(norm):
    edges = {
        name: trial.inputs[0].astype(np.float64) for name, trial in by_name(norm, "edge").items()
    }
    base = norm.trials[0].inputs[0].astype(np.float64)
    assert not edges["zeros"].any()
    assert np.array_equal(edges["negatives"], -np.abs(base))
    assert np.abs(edges["large"]).max() == pytest.approx(1e15, rel=1e-2)
    assert 0 < np.abs(edges["subnormal"]).max() < np.finfo(np.float32).tiny
    rows = np.isinf(edges["inf"]).sum(axis=1)
    assert set(rows) == {0, 1} and {np.inf, -np.inf} <= set(edges["inf"].flat)
    assert list(np.isnan(edges["nan"]).sum(axis=1)[:4]) == [1, 0, 1, 0]


def test_shape_sets_keep_the_size_that_a_weight_fixes(norm):
    sets = by_name(norm, "shape").values()
    assert {trial.shapes[0][1] for trial in sets} == {2048}
    rows = {trial.shapes[0][0] for trial in sets}
    assert 1 in rows and rows & set(shapes.PRIMES) and rows & set(shapes.CORES)
    assert all(trial.required and not trial.skipped for trial in sets)
    assert any("size 2048 is fixed" in note for note in norm.notes)


def test_operands_that_broadcast_change_together(hinge):
    sets = by_name(hinge, "shape")
    edged = [name for name in sets if " at " in name]
    assert 4 <= len(sets) - len(edged) <= shapes.MAX_SETS
    assert all(trial.shapes[0][1] == trial.shapes[1][0] for trial in sets.values())
    sizes = {size for trial in sets.values() for size in trial.shapes[0]}
    purposes = (shapes.PRIMES, shapes.LAST_PRIMES, shapes.RAGGED, shapes.CORES, shapes.TILE)
    assert 1 in sizes and all(sizes & set(wanted) for wanted in (*purposes, shapes.LONG))


def test_a_scalar_output_is_0_dim(hinge):
    assert hinge.trials[0].references[0].shape == () == hinge.trials[0].goldens[0].shape


def test_all_arguments_of_a_trial_by_name(norm):
    held = norm.arguments(norm.trials[0])
    assert list(held) == [item.name for item in norm.graph.inputs]
    assert [array.shape for array in held.values()] == [item.shape for item in norm.graph.inputs]


def test_provenance_names_versions_seeds_and_lacking_layers(norm):
    facts = norm.provenance
    assert facts["torch"] and facts["seeds"] == list(SEEDS)
    assert facts["sandbox_missing"] == list(norm.missing)
    assert facts["task_sha256"] == norm.task.digest


def test_only_the_records_lie_in_the_folder(norm):
    names = {path.name for path in norm.folder.iterdir()}
    assert wire.STAGE not in names and wire.MANIFEST in names
    assert [path.name for path in norm.folder.parent.iterdir()] == ["data"]


# --- the child's work in this process ---------------------------------------------------------


def test_every_input_group_is_a_trial_and_other_ranks_are_not_required(write_task, prepare_here):
    groups = "def get_input_groups():\n    return [[torch.ones(4, 8)], [torch.ones(5, 3)], "
    groups += "[torch.ones(2, 2, 2)], [torch.ones(0, 8)], [torch.ones(4, 8).half()]]\n"
    task = write_task(
        forward="return x * 2", inputs="None", tail=groups + "get_init_inputs = list\n"
    )
    manifest = prepare_here(task_with_groups_only(task), seeds=(1, 2))
    found = {item.name: item for item in manifest.trials if item.kind == "group"}
    assert len(found) == 5
    assert found["group 0"].required and found["group 1"].required
    assert "ranks" in found["group 2"].skipped and not found["group 2"].required
    assert "empty" in found["group 3"].skipped
    assert "element types" in found["group 4"].skipped
    assert any("first input group" in note for note in manifest.notes)


def task_with_groups_only(task):
    task.path.write_text(task.text.replace("def get_inputs", "def unused"))
    return open_task(task.path)


def test_a_reference_that_raises_is_a_skipped_trial(write_task, prepare_here):
    forward = "if not torch.compiler.is_compiling() and not torch.isfinite(x).all():\n"
    forward += "    raise ValueError('not finite')\nreturn x * 2"
    manifest = prepare_here(write_task(forward=forward), seeds=(1,), edges=True)
    skipped = {item.name: item.skipped for item in manifest.trials if item.skipped}
    assert set(skipped) == {"inf", "nan"}
    assert "ValueError: not finite" in skipped["inf"]


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
def test_what_pytorch_has_in_float32_alone_is_rounded_from_it(write_task, prepare_here, dtype):
    task = write_task(
        forward="return F.avg_pool3d(x, 2)", inputs=f"[torch.rand(1, 2, 4, 6, 8).{dtype}()]"
    )
    manifest = prepare_here(task, seeds=(1,))
    assert manifest.trials[0].references[0].shape == (1, 2, 2, 3, 4)
    assert any("has no aten.avg_pool3d of" in note for note in manifest.notes)


def test_integers_and_masks_stay_in_edge_sets(write_task, prepare_here, tmp_path):
    task = write_task(
        forward="return torch.where(y, x, z.float())",
        inputs="[torch.randn(6, 5), torch.ones(6, 5, dtype=torch.bool), torch.arange(5)]",
    )
    manifest = prepare_here(task, seeds=(1,), edges=True)
    zeros = next(item for item in manifest.trials if item.name == "zeros")
    masks = (tmp_path / zeros.inputs[1].file).read_bytes()
    assert set(masks) == {1} and zeros.inputs[2].dtype == "int64"
    assert zeros.goldens[0].dtype == "float64"


def test_an_edge_set_of_floats_that_no_integer_holds_is_skipped(write_task, prepare_here):
    manifest = prepare_here(write_task(forward="return (x * 9).int()"), seeds=(1,), edges=True)
    skipped = {item.name for item in manifest.trials if "cannot hold it" in item.skipped}
    assert skipped == {"large", "inf", "nan"}


def test_integer_outputs_are_their_own_golden(write_task, prepare_here):
    manifest = prepare_here(write_task(forward="return x.argmax(dim=1), x > 0"), seeds=(1,))
    assert [item.dtype for item in manifest.trials[0].goldens] == ["int64", "bool"]


def test_a_size_in_the_model_s_arithmetic_stays_in_every_set(write_task, prepare_here):
    task = write_task(forward="import math; return x.sum(dim=1) / math.log(x.shape[1])")
    manifest = prepare_here(task, seeds=(1,), shapes=True)
    assert manifest.graph.fixed == ((0, 1),)
    sets = [item for item in manifest.trials if item.kind == "shape"]
    assert len({item.inputs[0].shape[0] for item in sets}) > 2
    assert all(item.required and item.inputs[0].shape[1] == 8 for item in sets)
    assert "size 8 is fixed: the model's arithmetic has it as a number" in manifest.notes


def test_a_loop_of_the_model_s_own_is_not_captured_with_thousands_of_steps(
    write_task, prepare_here, monkeypatch
):
    from npusmith.task.captured import Captured  # imports torch

    captured: list[int] = []
    alone = Captured._capture_at

    def capture(self, inputs):
        captured.append(inputs.tensors[0].shape[1])
        return alone(self, inputs)

    monkeypatch.setattr(Captured, "_capture_at", capture)
    loop = "functools.reduce(lambda h, t: torch.tanh(h * 0.5 + t), x.unbind(1))"
    task = write_task(forward=f"import functools; return {loop}", inputs="[torch.randn(9, 5)]")
    manifest = prepare_here(task, seeds=(1,), shapes=True)
    assert manifest.graph.fixed == ((0, 1),) and len(manifest.graph.nodes) < 40
    assert any("goes along it" in note for note in manifest.notes)
    sets = [item.inputs[0].shape for item in manifest.trials if item.kind == "shape"]
    assert len({rows for rows, _ in sets}) > 2 and {steps for _, steps in sets} == {5}
    assert max(captured) < 50


def test_a_graph_of_thousands_of_operations_is_captured_once(write_task, prepare_here, monkeypatch):
    from npusmith.task import varying_sizes  # imports torch
    from npusmith.task.captured import Captured

    monkeypatch.setattr(varying_sizes, "MOST_OPERATIONS", 3)
    monkeypatch.setattr(Captured, "_capture_at", None)  # called: a TypeError
    forward = "return ((x + 1).exp() * 2).sin().sum(0)"
    manifest = prepare_here(write_task(forward=forward), seeds=(1, 2), edges=True, shapes=True)
    assert manifest.graph.fixed == ((0, 0), (0, 1))
    assert any("all sizes are fixed: the graph has 5 operations" in x for x in manifest.notes)
    assert {item.kind for item in manifest.trials} == {"random", "edge"}


def test_a_shape_that_is_asked_for_with_such_a_size_is_not_required(write_task, prepare_here):
    task = write_task(forward="import math; return x.sum(dim=1) / math.log(x.shape[1])")
    manifest = prepare_here(task, seeds=(1,), given=(((4, 9),), ((5, 8),)))
    other, own = manifest.trials
    assert not other.required and "baked" in other.skipped
    assert own.required and not own.skipped


@pytest.mark.parametrize("forward", ["x.sum(dim=1) / x.shape[1]", "x[:, : x.shape[1] // 2] * 2"])
def test_a_size_that_a_formula_follows_varies_as_any_other(write_task, prepare_here, forward):
    task = write_task(forward=f"return {forward}")
    manifest = prepare_here(task, seeds=(1,), shapes=True)
    assert manifest.graph.fixed == ()
    sets = [item for item in manifest.trials if item.kind == "shape"]
    assert len({item.inputs[0].shape[1] for item in sets if item.required}) > 2
    manifest = prepare_here(task, seeds=(1,), given=(((4, 9),), ((5, 8),)))
    assert all(item.required for item in manifest.trials)


def test_a_number_that_changes_with_the_seed_is_not_required(write_task, prepare_here):
    task = write_task(forward="return x * y", inputs="[torch.randn(4), float(torch.rand(()))]")
    manifest = prepare_here(task, seeds=(1, 2))
    first, second = manifest.trials
    assert first.required and not second.required and "numbers differ" in second.skipped


def test_where_float64_fails_the_golden_is_the_reference_and_says_so(write_task, prepare_here):
    forward = "assert x.dtype == torch.float32\nreturn x * 2"
    manifest = prepare_here(write_task(forward=forward), seeds=(1,))
    assert manifest.trials[0].goldens[0].dtype == "float64"
    assert "golden is the reference" in manifest.trials[0].notes[0]


def test_non_contiguous_inputs_are_stored_in_logical_order(write_task, prepare_here, tmp_path):
    task = write_task(inputs="[torch.arange(12.0).reshape(3, 4).t()]")
    manifest = prepare_here(task, seeds=(1,))
    stored = np.fromfile(tmp_path / manifest.trials[0].inputs[0].file, np.float32)
    assert list(stored[:4]) == [0, 4, 8, 1]
    assert "not contiguous" in manifest.notes[0]


def test_nan_and_0_dim_inputs_are_taken_and_noted(write_task, prepare_here):
    task = write_task(
        forward="return x * y", inputs="[torch.tensor([1.0, float('nan')]), torch.tensor(2.0)]"
    )
    manifest = prepare_here(task, seeds=(1,), edges=True, shapes=True)
    assert "holds NaN" in manifest.notes[0]
    assert manifest.graph.inputs[1].shape == ()


def test_an_unused_argument_of_a_foreign_type_is_left_out(write_task, prepare_here):
    task = write_task(forward="return x * z", inputs="[torch.ones(4), torch.ones(2).double(), 2.0]")
    manifest = prepare_here(task, seeds=(1,))
    assert [item.name for item in manifest.graph.inputs] == ["x"]
    assert manifest.arguments == 2 and len(manifest.trials[0].inputs) == 2


def test_a_model_that_writes_into_its_input_leaves_the_stored_input_alone(
    write_task, prepare_here, tmp_path
):
    task = write_task(forward="x.mul_(0)\nreturn x + 1", inputs="[torch.ones(4)]")
    manifest = prepare_here(task, seeds=(1,))
    assert list(np.fromfile(tmp_path / manifest.trials[0].inputs[0].file, np.float32)) == [1] * 4


# --- planning of shapes, without torch --------------------------------------------------------


def test_only_multiples_of_a_step_are_used_where_the_model_asks_for_them():
    def accepts(sized):
        return "" if sized[0][1] % 8 == 0 else "not divisible"

    free, notes = shapes.find_classes([(16, 1024)], accepts)
    assert [(item.size, item.step) for item in free] == [(16, 1), (1024, 8)] and not notes
    sets = shapes.plan_sets([(16, 1024)], free, 1 << 20, 0)
    assert sets and all(sized[0][1] % 8 == 0 for _, sized in sets)


@pytest.mark.parametrize("size", [14, 21, 22, 28, 42, 77, 112, 154])
def test_a_size_is_no_step_of_itself(size):
    """7 is tried times each step: 3 * 7 is the 21 that the model takes anyway."""

    def accepts(sized):
        return "" if sized[0][1] == size else "shapes cannot be multiplied"

    free, notes = shapes.find_classes([(5, size)], accepts)
    assert [item.size for item in free] == [5]
    assert notes == [f"size {size} is fixed: shapes cannot be multiplied"]


def test_a_batch_goes_together_whatever_else_has_its_size():
    """Two in a batch, and two heads in a group, whose number a parameter holds."""

    def accepts(sized):
        (batch, *_, heads, _), (other, *_) = sized
        return "" if batch == other and heads == 2 else "no such heads"

    free, _ = shapes.find_classes([(2, 31, 3, 2, 20), (2, 43, 3, 20)], accepts)
    assert frozenset({(0, 0), (1, 0)}) in [item.axes for item in free]
    assert not any((0, 3) in item.axes for item in free)


def test_sizes_of_a_matrix_product_change_together():
    def accepts(sized):
        return "" if sized[0][1] == sized[1][0] else "inner sizes differ"

    free, _ = shapes.find_classes([(64, 128), (128, 32)], accepts)
    inner = next(item for item in free if item.size == 128)
    assert inner.axes == {(0, 1), (1, 0)}


def test_thirds_of_a_size_that_broadcasts_by_chance_are_steps_of_three():
    """A sum of the thirds of 7 is one of 3, 3 and 1; of 11 it is refused."""

    def accepts(sized):
        return "" if sized[0][1] % 3 == 0 or sized[0][1] == 7 else "sizes differ"

    free, _ = shapes.find_classes([(8, 9)], accepts)
    assert [(item.size, item.step) for item in free] == [(8, 1), (9, 3)]


def test_a_size_that_ends_at_a_limit_is_free():
    free, _ = shapes.find_classes([(5, 8)], lambda sized: "" if sized[0][1] <= 8 else "too long")
    assert [(item.size, item.step) for item in free] == [(5, 1), (8, 1)]


@pytest.mark.parametrize("size", [11, 40, 101])
def test_a_size_up_to_which_indices_were_drawn_is_free_upward(size):
    def accepts(sized):
        return "" if sized[0][1] >= size else "index out of range"

    free, notes = shapes.find_classes([(5, size)], accepts)
    assert [(item.size, item.least) for item in free] == [(5, 1), (size, size)] and not notes
    sets = shapes.plan_sets([(5, size)], free, 2000, 0)
    assert sets and all(sized[0][1] >= size and np.prod(sized[0]) <= 2000 for _, sized in sets)
    assert {free[1].fit(small) for small in (1, 2, 3)} == {size + 1, size + 2, size + 3}


def test_a_set_that_is_refused_is_taken_apart():
    axes = [((0, 0), (1, 0)), ((0, 1),)]
    own, sized = [(4, 6), (4, 1)], [(7, 9), (7, 1)]
    found = list(shapes.one_by_one(own, axes, sized, 1 << 20))
    assert found == [[(7, 6), (7, 1)], [(4, 9), (4, 1)]]
    assert list(shapes.one_by_one(own, axes, sized, 45)) == found[1:]


def test_sizes_are_tried_one_by_one_where_the_model_refuses_them_together(write_task, prepare_here):
    forward = "return x + torch.arange(24.0)[: x.shape[1]]"
    task = write_task(forward=forward, inputs="[torch.randn(6, 12)]")
    prepared = prepare_here(task, seeds=(1,), shapes=True)
    shaped = [item for item in prepared.trials if item.kind == "shape"]
    primes = [item for item in shaped if "primes" in item.notes]
    refused, rows = primes[0], primes[1]
    assert refused.skipped and not rows.skipped
    assert rows.inputs[0].shape[0] in shapes.PRIMES and rows.inputs[0].shape[1] == 12


def test_values_on_the_way_are_not_far_larger_than_inputs_may_be(write_task, prepare_here):
    """The scores of an attention grow as the square of a length."""
    task = write_task(forward="return (x @ x.t()).softmax(-1) @ x", inputs="[torch.randn(6, 5)]")
    manifest = prepare_here(task, seeds=(1,), shapes=True)
    rows = [item.inputs[0].shape[0] for item in manifest.trials if item.kind == "shape"]
    assert 1024 < max(rows) < 2900  # of 4097 and more that are planned
    manifest = prepare_here(task, seeds=(1,), given=(((5000, 5),), ((50, 5),)))
    assert ["too many elements" in item.skipped for item in manifest.trials] == [True, False]


def test_shape_sets_respect_the_element_limit():
    free, _ = shapes.find_classes([(8, 300, 50)], lambda sized: "")
    for limit in (100, 5000, 1 << 20):
        for _, sized in shapes.plan_sets([(8, 300, 50)], free, limit, 0):
            assert np.prod(sized[0]) <= limit


def test_sizes_that_never_change_are_reported():
    free, notes = shapes.find_classes([(8, 5)], lambda sized: "" if sized[0][1] == 5 else "no")
    assert [item.size for item in free] == [8]
    assert notes == ["size 5 is fixed: no"]
    assert not any(sized[0][1] != 5 for _, sized in shapes.plan_sets([(8, 5)], free, 1 << 20, 0))


def test_sizes_follow_the_seed_and_keep_their_purpose():
    base = [(64, 128, 1024)]
    free, _ = shapes.find_classes(base, lambda sized: "")
    plans = [shapes.plan_sets(base, free, 1 << 22, seed) for seed in (11, 11, 16, 21)]
    assert plans[0] == plans[1] and plans[0] != plans[2] != plans[3] != plans[0]
    for plan in plans:
        sized = {name: found[0] for name, found in plan}
        assert sized["one row"] == (1, 1, 1024) and sized["one element"] == (1, 1, 1)
        assert len(set(sized["primes"])) == 3 and sized["primes"][2] in shapes.LAST_PRIMES
        assert sized["past the cores, rows off 32 bytes"][0] > 48
        assert sized["past the cores, rows off 32 bytes"][2] % 8
        assert sized["past a tile"][2] > 4096 and sized["more rows than a tile"][0] > 4096
        assert sized["a row longer than the buffer"][2] > 65536


def test_edge_values_are_tried_at_other_shapes_too(hinge):
    found = {name: trial for name, trial in by_name(hinge, "shape").items() if " at " in name}
    assert {name.split(" ")[0] for name in found} == {"zeros", "large", "subnormal", "inf", "nan"}
    assert len({str(trial.shapes) for trial in found.values()}) == 2
    for name, trial in found.items():
        values = trial.inputs[0]
        assert not trial.skipped and trial.shapes != hinge.trials[0].shapes
        assert np.isnan(values).any() == name.startswith("nan")
        assert np.isinf(values).any() == name.startswith("inf")


# --- what the parent believes -----------------------------------------------------------------


def spoil_manifest(folder: Path, change) -> None:
    record = json.loads((folder / wire.MANIFEST).read_text())
    change(record)
    (folder / wire.MANIFEST).write_text(json.dumps(record))


def first_tensor(record) -> dict:
    return record["trials"][0]["inputs"][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: first_tensor(record).update(file="../../../etc/passwd"),
        lambda record: first_tensor(record).update(file="trial_0_none.bin"),
        lambda record: first_tensor(record).update(shape=[1 << 40]),
        lambda record: first_tensor(record).update(dtype="object"),
        lambda record: record["trials"][0]["inputs"].clear(),
        lambda record: record["trials"][0].update(references=[], goldens=[], inputs=[]),
        lambda record: record["trials"][0]["goldens"][0].update(shape=[8, 4]),
        lambda record: record["graph"].update(outputs=["nothing"]),
        lambda record: record["parameters"].clear(),
        lambda record: record.update(extra=1),
        lambda record: record.clear(),
    ],
)
def test_forged_records_are_refused(norm, tmp_path, change):
    folder = tmp_path / "data"
    shutil.copytree(
        norm.folder, folder, ignore=lambda _, names: [n for n in names if "trial_1" in n]
    )
    spoil_manifest(folder, lambda record: record.update(trials=record["trials"][:1]))
    check_files(norm.task, folder, read_manifest(norm.task, folder))  # good so far
    spoil_manifest(folder, change)
    with pytest.raises(TaskError) as caught:
        check_files(norm.task, folder, read_manifest(norm.task, folder))
    assert caught.value.code == "task-result"


def test_a_link_in_place_of_a_tensor_is_refused(norm, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(norm.folder, folder)
    target = folder / norm.trials[0].record.inputs[0].file
    twin = tmp_path / "elsewhere"
    target.rename(twin)
    target.symlink_to(twin)
    with pytest.raises(TaskError) as caught:
        check_files(norm.task, folder, norm.manifest)
    assert caught.value.code == "task-result"


@pytest.mark.parametrize(
    "forward", ["return torch.softmax(x, 1)[:, 0]", "return torch.sort(x, 1).indices[:, 0]"]
)
def test_an_output_of_one_element_may_have_any_stride(write_task, prepare_here, forward):
    task = write_task(forward=forward, inputs="[torch.randn(1, 53)]")
    (trial,) = prepare_here(task, seeds=(1,)).trials
    assert trial.inputs[0].shape == (1, 53) and trial.references[0].shape == (1,)


def test_a_batch_of_one_is_tried_at_other_sizes(write_task, prepare_here):
    forward = "return F.embedding(x, torch.ones(9, 4).cumsum(0)).sum(1)"
    task = write_task(forward=forward, inputs="[torch.randint(0, 9, (1, 20))]")
    manifest = prepare_here(task, seeds=(1, 2), shapes=True)
    assert manifest.graph.inputs[0].shape == (1, 20)
    assert manifest.graph.longer.inputs[0].shape == (2, 20)
    assert ((0, 0),) in [item.axes for item in manifest.free]
    sized = {trial.inputs[0].shape for trial in manifest.trials if not trial.skipped}
    assert (1, 20) in sized and any(batch > 48 for batch, _ in sized)
    assert any(batch == 1 and rest > 100 for batch, rest in sized)  # at a batch of one, too


def test_rows_of_a_longer_batch_of_one_differ(write_task, prepare_here, tmp_path):
    task = write_task(forward="return x * 2", inputs="[torch.randint(0, 900, (1, 20))]")
    manifest = prepare_here(task, seeds=(1,), shapes=True)
    item = next(t.inputs[0] for t in manifest.trials if not t.skipped and t.inputs[0].shape[0] > 48)
    rows = np.fromfile(tmp_path / item.file, np.int64).reshape(item.shape)
    assert len({tuple(row) for row in rows}) == 3


def test_values_between_kernels_may_be_those_of_a_longer_batch(write_task, tmp_path):
    from npusmith.task.captured_intermediates import CapturedIntermediates
    from npusmith.task.trials import make_orders

    task = write_task(forward="return x.exp().sum(1)", inputs="[torch.randn(1, 20)]")
    orders = make_orders(task, tmp_path, seeds=(1, 2), intermediates=("exp",), longer=True)
    manifest = CapturedIntermediates(orders, tmp_path).run()
    assert [trial.inputs[0].shape for trial in manifest.trials] == [(2, 20)] * 2
    assert [item.shape for item in manifest.trials[0].references] == [(2,), (2, 20)]
