"""The agent as a writer of a bench, on a task that an earlier session has prepared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from agentcases import PROGRAM, fenced

from npusmith.agent import tasks
from npusmith.agent.options import read_options
from npusmith.agent.writer import AgentWriter
from npusmith.agent.writer import open_writer as open_agent
from npusmith.bench.model import Brief, Candidate, Item, Limits, Record
from npusmith.bench.plan import judge_digest
from npusmith.bench.work import WriterAway
from npusmith.errors import NpusmithError
from npusmith.open_writer import open_writer
from npusmith.store.turns import open_journal
from npusmith.target.chips import find_chip
from npusmith.task.prepared import Prepared
from npusmith.task.trials import DATA
from npusmith.task.verdict import Rung, Trial

WRONG = PROGRAM.replace("adds(t, t, 1.0, n)", "adds(t, t, 2.0, n)")
ITEM = Item(suite="s", name="tiny", category="activation", source="tiny.py", digest="d")


def writer(folder: Path, *texts: str, options: str = "samples=1,rounds=0") -> AgentWriter:
    rules = [
        {"seeds": [1000 * number, number], "replies": [text]} for number, text in enumerate(texts)
    ]
    script = folder / "script.json"
    script.write_text(json.dumps({"rules": rules}))
    return open_agent(f"model=scripted:{script},journal={folder / 'journal'},{options}", "910B2")


def lay_out(tiny: Prepared, folder: Path) -> None:
    """What an earlier session of the same task leaves."""
    home = folder / "journal" / "tasks" / f"{tiny.task.digest[:16]}-{judge_digest()[:16]}"
    shutil.copytree(tiny.folder, home / DATA)


def test_a_candidate_is_a_project_and_a_reply_without_one_is_a_refusal(
    tiny: Prepared, tmp_path: Path
) -> None:
    lay_out(tiny, tmp_path)
    brief = Brief(item=ITEM, reference=tiny.task.text, path=tiny.task.path, operator="tiny_custom")
    made = writer(tmp_path, fenced(WRONG))  # legal, and so a project: the suite is to judge it
    first = made.write(brief, 0, 7)
    assert {"op_kernel/tiny_custom.cpp", "tiny_custom.tile.py"} <= set(first.files)
    assert (first.refusal, first.seed, first.writer[:6]) == ("", 7, "agent:")
    assert first.tokens > 1000
    assert made.write(brief, 0, 7).digest == first.digest  # from the journal: no script is needed
    with pytest.raises(NpusmithError) as caught:
        writer(tmp_path, "", "", "Prose.").write(brief, 2, 7)
    assert caught.value.code == "agent-none"


HOST = """
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext *context)
{
    context->SetBlockDim(1);
    return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class TinyCustom : public OpDef {
public:
    explicit TinyCustom(const char *name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(TinyCustom);
}
"""
KERNEL = """<kernel_impl>
```cpp
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void tiny_custom(GM_ADDR x, GM_ADDR y, GM_ADDR w, GM_ADDR tiling)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 256);
    LocalTensor<float> t = buffer.Get<float>();
    Abs(t, t, 64);
}
```
</kernel_impl>
"""


class KernelSuite:
    """Takes kernels alone, and says what the words in them ask for."""

    name = "s"
    root = Path()

    def __init__(self) -> None:
        self.asked: list[Limits] = []

    def export(self, item: Item, candidate: Candidate, folder: Path, chip: str) -> None:
        code = candidate.files["response.txt"].partition("```cpp\n")[2].partition("```")[0]
        for name, text in (("op_host", HOST), ("op_kernel", code)):
            (folder / name).mkdir(parents=True)
            (folder / name / "tiny_custom.cpp").write_text(text)

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        self.asked.append(limits)
        right = "Abs(t" in candidate.files["response.txt"]
        said = [] if right else ["ub-bounds: beyond the buffer (tiny_custom.cpp:9)"]
        note = Trial(name="case 0", passed=right, message="" if right else "values differ")
        return Record(
            key="", suite="s", item="tiny", category="Math", writer="", sample=0, candidate="",
            compiled=True, official=right, strict=right, messages=said, trials=[note],
            rung=(Rung.RACE_FREE if right else Rung.RAN).value,
        )  # fmt: skip


def test_an_item_that_only_its_suite_can_judge_gets_rounds_with_the_suites_findings(
    tmp_path: Path,
) -> None:
    brief = Brief(item=ITEM, reference="", prompt="Write it.", formats=("kernel_only",))
    script = tmp_path / "script.json"
    replies = ["Prose.", KERNEL.replace(", 64)", ")"), KERNEL.replace("Abs", "Relu"), KERNEL]
    rules = [{"seeds": [at], "replies": [f"So. {text}"]} for at, text in enumerate(replies)]
    script.write_text(json.dumps({"rules": rules}))
    made = open_agent(
        f"model=scripted:{script},journal={tmp_path / 'journal'},samples=1,rounds=3", "910B2"
    )
    with pytest.raises(NpusmithError) as caught:  # nobody to judge
        made.write(brief, 0, 7)
    assert caught.value.code == "usage"
    suite, limits = KernelSuite(), Limits()
    made.meet(suite, limits)
    found = made.write(brief, 0, 7)
    assert (found.format, found.files) == ("kernel_only", {"response.txt": KERNEL})
    assert {(asked.seed == limits.seed, asked.trials) for asked in suite.asked} == {(False, 2)}
    with open_journal(tmp_path / "journal") as store:
        turns = store.turns("tiny/0")
    prompts = [json.loads(turn.request)["messages"][-1]["content"] for turn in turns]
    assert prompts[0].startswith("Write it.\n\n## Now")
    assert "error[reply-no-code]: the reply is not in the form that is asked for" in prompts[1]
    assert "error[compile-failed] at op_kernel/tiny_custom.cpp:9: " in prompts[2]
    assert "Abs(const LocalTensor<T> &dst" in prompts[2]  # how it is declared
    assert "error[ub-bounds] at op_kernel/tiny_custom.cpp:9: beyond the buffer" in prompts[3]
    assert "seen: the line is Relu(t, t, 64);" in prompts[3]
    assert "error[agent-values]: case 0: values differ" in prompts[3]


def test_an_endpoint_that_stays_away_and_a_budget_that_is_spent_refuse_nobody(
    tiny: Prepared, tmp_path: Path
) -> None:
    lay_out(tiny, tmp_path)
    brief = Brief(item=ITEM, reference=tiny.task.text, path=tiny.task.path, operator="tiny_custom")
    cut = tmp_path / "cut.json"  # a call that failed counts with the most that it may take
    cut.write_text(json.dumps({"rules": [{"fault": {"kind": "cut"}}]}))
    options = f"journal={tmp_path / 'journal'},samples=1,max-tokens=100000,budget-tokens=150000"
    poor = open_agent(f"model=scripted:{cut},{options}", "910B2")
    with pytest.raises(WriterAway) as caught:
        poor.write(brief, 1, 7)
    assert (caught.value.code, caught.value.message) == (
        "budget-spent", "the budget does not pay for turn 2",
    )  # fmt: skip
    gone = tmp_path / "gone.json"
    gone.write_text(json.dumps({"rules": [{"fault": {"kind": "down"}}]}))
    away = open_agent(f"model=scripted:{gone},journal={tmp_path / 'journal'},samples=1", "910B2")
    with pytest.raises(WriterAway) as caught:
        away.write(brief, 0, 7)
    assert caught.value.code == "model-down"


def test_a_bench_opens_it_by_its_options() -> None:
    found = open_writer("agent:model=scripted,samples=2")
    assert found.name == "agent:scripted"
    with pytest.raises(NpusmithError) as caught:
        open_writer("agent:model=m")
    assert caught.value.code == "model-spec"


def test_a_prepared_task_that_was_damaged_is_made_again(
    tiny: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tiny, tmp_path)
    home = tmp_path / "journal" / "tasks"
    with tasks.open_prepared(tiny.task.path, home) as found:
        assert found.graph == tiny.graph
    next(home.rglob("*.bin")).write_bytes(b"")
    made: list[Path] = []

    def again(task: object, folder: Path, sets: object = None) -> Prepared:
        made.append(folder)
        return tiny

    monkeypatch.setattr(tasks, "prepare", again)
    with tasks.open_prepared(tiny.task.path, home):
        assert len(made) == 1


def test_a_journal_that_holds_a_run_is_refused_before_anything_is_computed(
    tmp_path: Path,
) -> None:
    setting, _ = read_options("model=scripted,samples=2")
    with open_journal(tmp_path) as store:
        store.begin("main", json.dumps(setting.frozen))
    chip = find_chip("910B2")
    with pytest.raises(NpusmithError) as caught:
        AgentWriter(setting, chip, tmp_path, resume=False)
    assert caught.value.code == "run-exists"
    AgentWriter(setting, chip, tmp_path)  # goes on
