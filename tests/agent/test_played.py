"""Three tasks on each route, with recorded replies: a mistake that was made, then what was right.

The replies lie in played/. Each was written from the very prompts that are sent; a first reply is
the right one with a mistake in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from agentcases import fenced

from npusmith.agent.models import Choice
from npusmith.agent.policy import Terms
from npusmith.agent.scripted import Script, Scripted
from npusmith.agent.talk import Answer, Request
from npusmith.agent.task_session import Setting, route_task, run_session
from npusmith.store.turns import open_journal
from npusmith.target.chips import find_chip
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.trials import Sets, prepare

PLAYED = Path(__file__).parent / "played"
CHIP = find_chip("910B2")


@dataclass(frozen=True)
class Mistake:
    """`was` in the place of `right` in the first reply; `code` and `said`: what is told of it."""

    right: str
    was: str
    code: str
    said: str


MISTAKES = {
    ("linear_gelu", "tile"): Mistake(
        "        with split:\n            load(v0, v1, 1, n)\n", "            load(v0, v1, 1, n)\n",
        "lang-stage", "with split",
    ),
    ("attention", "tile"): Mistake(
        "scale = 1.0 / value(root)", "scale = 0.0 + value(root)", "agent-values",
        "stored by core",
    ),
    ("conv1d", "tile"): Mistake(
        "            store(padded[line * wide + 2 + length], zero, 2)\n", "",
        "lang-undefined-read", "padded[52]",
    ),
    ("linear_gelu", "kernel"): Mistake(
        "Muls(half, acc, 0.70710678f, n);", "Muls(half, acc, 0.70710678f);", "compile-failed",
        "void Muls(const LocalTensor<T> &dst",
    ),
    ("attention", "kernel"): Mistake(
        "uint8_t *v, uint8_t *y) {\n  attention_custom<<<blockDim, nullptr, stream>>>(q, k, v, y)",
        "uint8_t *y) {\n  attention_custom<<<blockDim, nullptr, stream>>>(q, k, k, y)",
        "launcher-arguments", "uint8_t *q, uint8_t *k, uint8_t *v, uint8_t *y)",
    ),
    ("conv1d", "kernel"): Mistake(
        "kTaps = 5, kPadding = 2", "kTaps = 5, kPadding = 1", "agent-values", "wrong: ",
    ),
    ("linear_gelu", "project"): Mistake(
        "data->depth = static_cast<uint32_t>(depth)", "data->depth = static_cast<uint32_t>(cols)",
        "gm-bounds", "p_layer_weight",
    ),
    ("attention", "project"): Mistake(
        "    uint32_t keys;\n", "", "compile-failed", "keys",
    ),
    ("conv1d", "project"): Mistake(
        "Conv1dCustom : public OpDef", "Conv1DCustom : public OpDef", "compile-failed",
        "Conv1dCustom",
    ),
}  # fmt: skip


class Asked:
    """A scripted model that keeps its prompts."""

    name = "scripted"

    def __init__(self, *replies: str) -> None:
        rules = [{"seeds": [at], "replies": [text]} for at, text in enumerate(replies)]
        self._model = Scripted(Script.model_validate({"rules": rules}))
        self.prompts: list[str] = []

    def ask(self, request: Request) -> Answer:
        self.prompts.append(request.messages[-1].content)
        return self._model.ask(request)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Prepared]]:
    """A task on one set of its own inputs."""
    held: dict[str, Prepared] = {}

    def get(name: str) -> Prepared:
        if name not in held:
            folder = tmp_path_factory.mktemp(name) / "task"
            task = open_task(PLAYED / f"{name}.py")
            held[name] = prepare(task, folder, sets=Sets(seeds=(11,), edges=False, shapes=False))
        return held[name]

    yield get


def reply(name: str, route: str) -> str:
    if route == "project":
        return (PLAYED / f"{name}.project").read_text()
    if route == "kernel":
        return f"```cpp\n{(PLAYED / f'{name}.asc').read_text()}```\n"
    return fenced((PLAYED / f"{name}.tile").read_text())


@pytest.mark.parametrize(("name", "route"), MISTAKES)
def test_a_mistake_is_told_and_the_next_reply_is_right(
    name: str, route: str, prepared: Callable[[str], Prepared], tmp_path: Path
) -> None:
    mistake, right = MISTAKES[name, route], reply(name, route)
    assert right.count(mistake.right) == 1
    model = Asked(right.replace(mistake.right, mistake.was), right)
    setting = Setting(
        choice=Choice(model="scripted", concurrency=1), route=route, start="none",
        terms=Terms(samples=1, rounds=2),
    )  # fmt: skip
    routed = route_task(prepared(name), CHIP, "strict", setting)
    with open_journal(tmp_path) as store:
        ending = run_session(routed, setting, model, store, "main", False)
    assert (ending.why, len(ending.attempts)) == ("target", 2)
    first = ending.attempts[0].assessment
    assert mistake.code in first.codes
    assert mistake.said in model.prompts[1].partition("## Findings")[2] + "".join(
        model.prompts[1].partition("## Ascend C functions")[1:]
    )
    if route == "tile":
        assert "## Products on cube cores" in model.prompts[0]
