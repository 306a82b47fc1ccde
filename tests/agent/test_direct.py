"""The routes straight to Ascend C, on the twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from agentcases import PROGRAM, fenced

from npusmith.agent.assessment import Step
from npusmith.agent.direct import DirectRoute, example
from npusmith.agent.extract import blocks
from npusmith.agent.ports import find_ports
from npusmith.agent.prompt import rules
from npusmith.agent.route import Goal, first_prompt, next_prompt
from npusmith.agent.shots import read_shots
from npusmith.agent.signatures import BASIC, Signatures, open_signatures
from npusmith.agent.talk import Answer, Usage
from npusmith.agent.tile import TileRoute
from npusmith.ir.dtypes import DType
from npusmith.lang import parse
from npusmith.target.chips import find_chip
from npusmith.task.graph import GraphInput
from npusmith.task.prepared import Prepared

CHIP = find_chip("910B2")
SOURCE = example().replace("softsign_custom", "tiny_custom")


@pytest.fixture(scope="module")
def signatures() -> Signatures:
    return open_signatures(CHIP)


def answer(text: str) -> Answer:
    return Answer(text=text, usage=Usage(prompt=1, completion=1))


def test_signatures_are_those_that_compile(signatures: Signatures) -> None:
    (add,) = signatures.lines(["Add"])
    head, first, *_ = add.split("\n")
    assert head.startswith("Add: types: half, float, int16_t, int32_t;")
    assert first.strip() == (
        "template <typename T, bool isSetMask = true> void Add(const LocalTensor<T> &dst, "
        "const LocalTensor<T> &src0, const LocalTensor<T> &src1, const int32_t &count)"
    )
    (pad,) = signatures.lines(["DataCopyPad"])
    assert "struct DataCopyExtParams { " in pad and "uint32_t blockLen" in pad
    assert "T paddingValue = T{} }" in pad and "twin::" not in pad
    (copy,) = signatures.lines(["DataCopy"])
    fields = copy[copy.index("struct DataCopyParams") :]
    assert "uint16_t dstStride = 0 }" in fields and "Gap" not in fields  # a union's first name
    assert signatures.lines(["NoSuchThing"]) == []
    assert signatures.used_in("Foo(a); Adds(y, x, 1, n); // Exp(\n q.EnQue<float>(x);") == [
        "Adds", "EnQue",
    ]  # fmt: skip
    assert {"ReduceMax", "Sub", "Exp"} <= set(signatures.for_ops(["amax", "sub", "exp"]))


def test_a_source_that_does_not_compile_comes_back_with_its_line_and_the_right_signature(
    tiny: Prepared, tmp_path: Path, signatures: Signatures
) -> None:
    route = DirectRoute(tiny, CHIP, "strict", signatures, [], timed=False)
    wrong = SOURCE.replace("Adds(y, y, 1.0f, n)", "Adds(y, y, 1.0f)")
    draft = route.read(answer(f"```cpp\n{wrong}```"))
    (tmp_path / "a").mkdir()
    found = route.assess(draft, tmp_path / "a")
    assert (found.step, found.codes) == (Step.READ, ("compile-failed",))
    line = 1 + wrong[: wrong.index("Adds(y")].count("\n")
    assert (found.notes[0].file, found.notes[0].line) == ("tiny_custom.asc", line)
    said = next_prompt(route, Goal.REPAIR, draft, found, (), None)[1].content
    assert f"error[compile-failed] at tiny_custom.asc:{line}: " in said
    assert "void Adds(const LocalTensor<T> &dst" in said
    assert str(tmp_path) not in said

    (tmp_path / "b").mkdir()
    right = route.assess(route.read(answer(f"```cpp\n{SOURCE}```")), tmp_path / "b")
    assert (right.step, right.correct) == (Step.RACE_FREE, True)


def test_host_and_kernel_are_read_as_files_and_judged_as_a_project(
    tiny: Prepared, tmp_path: Path, signatures: Signatures
) -> None:
    tile = TileRoute(tiny, CHIP, "strict", [], timed=False)
    program, folder = parse(PROGRAM), tmp_path / "made"
    folder.mkdir()
    tile.write(program, tile.ports.spec(program), PROGRAM, folder)
    route = DirectRoute(tiny, CHIP, "strict", signatures, read_shots(), False, "project")
    said = first_prompt(route, 0, ())[1].content
    assert "```cpp op_host/softsign_custom.cpp" in said
    assert "```cpp op_kernel/softsign_custom_tiling.h" in said
    names = (*route.paths, *(name for name in route.extra if (folder / name).is_file()))
    reply = "".join(f"```cpp {name}\n{(folder / name).read_text()}```\n" for name in names)
    draft = route.read(answer(reply))
    assert set(draft.files) == set(names)
    assert route.edit(draft.text).files == draft.files
    assert [block.label for block in blocks(draft.text)] == [f"cpp {name}" for name in draft.files]
    (tmp_path / "judged").mkdir()
    assert route.assess(draft, tmp_path / "judged").correct


def test_the_example_of_a_project_infers_shapes_also_where_it_has_several_kernels(
    tiny: Prepared, signatures: Signatures
) -> None:
    shots = [shot for shot in read_shots() if shot.name == "linear_columns"]
    route = DirectRoute(tiny, CHIP, "strict", signatures, shots, False, "project")
    said = route.help(None, None)
    assert "linear_columns_custom_kernel" in said and "KERNEL_TYPE_MIX" in said
    assert "yShape->SetDim(0, unknown ? -1 : pLayerWeightShape.GetDim(0));" in said
    assert "SetDimNum(0)" not in said
    assert "REGISTER_TILING_DEFAULT" in rules("project") and "REGISTER_TILING_DEFAULT" in said
    assert "its type TinyCustom" in route.task()


def test_a_product_gets_the_declarations_of_the_cube(signatures: Signatures) -> None:
    lines = "\n".join(signatures.lines([*BASIC, *signatures.for_ops(["mm", "add"])]))
    for part in ("const Nd2NzParams &how", "void Mmad(", "const LoadData2DParams &how",
                 "struct FixpipeParamsV220 {"):  # fmt: skip
        assert part in lines
    assert "Mmad(" not in "\n".join(signatures.lines([*BASIC, *signatures.for_ops(["add"])]))


def test_tensors_are_listed_in_the_order_in_which_a_launcher_gets_them(tiny: Prepared) -> None:
    """The capture has parameters first; the judge passes forward's arguments first."""
    graph = tiny.graph
    held = GraphInput(
        name="p_scale", shape=(100,), dtype=DType.FLOAT32, kind="parameter", target="scale"
    )
    graph = graph.model_copy(update={"inputs": (held, *graph.inputs)})
    task = replace(tiny, manifest=tiny.manifest.model_copy(update={"graph": graph}))
    assert [item.name for item in graph.operator_inputs] == ["x", "p_scale"]
    lines = find_ports(task).lines()
    assert [line.split(":")[0] for line in lines] == ["- x", "- p_scale", "- y"]
    assert lines[1].endswith("the module's scale")


def test_a_reply_reads_no_file_of_this_machine_and_starts_nothing_on_it(
    tiny: Prepared, tmp_path: Path, signatures: Signatures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUSMITH_API_KEY", "canary-of-the-environment")
    secret, mark = tmp_path / "secret", tmp_path / "started"
    secret.write_text("canary_of_a_file 7\n")
    route = DirectRoute(tiny, CHIP, "strict", signatures, [], timed=False)
    reads = f'#include "{secret}"\n' + SOURCE
    at = SOURCE.index("{", SOURCE.index('extern "C" void')) + 1
    starts = (
        "#include <cstdio>\n#include <cstdlib>\n" + SOURCE[:at]
        + f'system("touch {mark}"); puts(getenv("NPUSMITH_API_KEY")); abort();' + SOURCE[at:]
    )  # fmt: skip
    for number, (text, code) in enumerate(((reads, "compile-failed"), (starts, "kernel-crash"))):
        folder = tmp_path / "run" / str(number)
        folder.mkdir(parents=True)
        found = route.assess(route.edit(text), folder)
        assert found.codes[0] == code
        assert "canary" not in found.model_dump_json()
    assert not mark.exists()


def test_a_tile_program_is_no_ascend_c(tiny: Prepared, signatures: Signatures) -> None:
    from npusmith.errors import NpusmithError

    route = DirectRoute(tiny, CHIP, "strict", signatures, [], timed=False)
    with pytest.raises(NpusmithError) as caught:
        route.read(answer(fenced(PROGRAM)))
    assert caught.value.code == "reply-no-code"
