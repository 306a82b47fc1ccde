"""Scripts, recordings, and how a model is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agentcases import ask, fenced

from npusmith.agent.budget import Budget, Prices
from npusmith.agent.endpoint import address
from npusmith.agent.models import Choice, open_model
from npusmith.agent.options import read_options
from npusmith.agent.replay import Recorder, Replay
from npusmith.agent.scripted import Script, Scripted, read_script
from npusmith.agent.talk import Usage
from npusmith.errors import NpusmithError


def script(**rule: object) -> Scripted:
    return Scripted(Script.model_validate({"rules": [rule]}))


def code_of(call, *args) -> str:  # type: ignore[no-untyped-def]
    with pytest.raises(NpusmithError) as caught:
        call(*args)
    return caught.value.code


def test_a_script_answers_by_the_request_alone() -> None:
    model = script(contains=["write"], replies=["a", "b"])
    assert [model.ask(ask(seed=seed)).text for seed in (0, 1, 2, 0)] == ["a", "b", "a", "a"]


def test_without_a_rule_the_example_of_the_prompt_is_repeated() -> None:
    prompt = f"## Task\n\n{fenced('task')}\n## Example: one\n\n```python\nshot\n```\n"
    assert Scripted().ask(ask(prompt)).text == "```python\nshot\n```\n"


def test_a_fault_of_a_script_is_the_error_that_it_would_become() -> None:
    assert code_of(script(fault={"kind": "slow"}).ask, ask()) == "model-slow"


@pytest.mark.parametrize("text", ["", "[]", '{"rules": [{"replies": []}]}', '{"rule": []}', "\xff"])
def test_a_file_that_is_no_script_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(text.encode("latin-1"))
    assert code_of(read_script, path) == "script-file"


def test_a_recording_says_it_all_again_errors_too(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    model = Recorder(script(contains=["write"], replies=["a", "b"]), path)
    first = [model.ask(ask(seed=seed)) for seed in (0, 1, 0)]
    bad = Recorder(script(fault={"kind": "cut"}), path)
    assert code_of(bad.ask, ask("other")) == "model-cut"
    again = Replay(path)
    assert [again.ask(ask(seed=seed)) for seed in (0, 1, 0)] == first
    assert code_of(again.ask, ask("other")) == "model-cut"
    assert code_of(again.ask, ask(seed=1)) == "replay-missing"


def test_half_a_line_of_a_killed_run_is_no_call(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    Recorder(Scripted(), path).ask(ask())
    with path.open("ab") as file:
        file.write(b'{"key": "abc')
    assert Replay(path).ask(ask()).text
    Recorder(Scripted(), path).ask(ask("more"))
    assert Replay(path).ask(ask("more")).text


@pytest.mark.parametrize("line", ["7", "{}", '{"key": 3}', '{"key": "a", "error": {"code": "x"}}'])
def test_a_recording_edited_into_nonsense_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "calls.jsonl"
    Recorder(Scripted(), path).ask(ask())
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(NpusmithError) as caught:
        Replay(path)
    assert (caught.value.code, caught.value.place.line) == ("file-unusable", 2)


def test_no_key_is_in_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUSMITH_API_KEY", "sk-not-to-be-seen")
    path = tmp_path / "calls.jsonl"
    open_model(Choice(model="scripted", record=path)).ask(ask())
    assert "sk-not-to-be-seen" not in path.read_text()


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        (Choice(), "model-spec"),
        (Choice(model="m"), "model-spec"),
        (Choice(model="m", base_url="ftp://x/v1"), "model-spec"),
        (Choice(model="m", base_url="http://"), "model-spec"),
        (Choice(model="m", base_url="http://me:sk-secret@h/v1"), "model-spec"),
        (Choice(model="m", base_url="http://h/v1?key=sk-secret"), "model-spec"),
        (Choice(model="m", base_url="http://h/v1?api-version=1&key=sk-secret"), "model-spec"),
        (Choice(model="m", base_url="http://h:x/sk-secret"), "model-spec"),
        (Choice(model="m", base_url="http://h/v1", key_name="NO_SUCH_KEY"), "model-key"),
        (Choice(model="m", base_url="http://h/v1", key_name="sk-secret"), "model-spec"),
        (Choice(model="scripted:/no/such/file"), "file-missing"),
        (Choice(replay=Path("/no/such/file")), "file-missing"),
    ],
)
def test_a_model_that_cannot_be_reached_is_refused(choice: Choice, code: str) -> None:
    with pytest.raises(NpusmithError) as caught:
        open_model(choice)
    assert caught.value.code == code
    assert "sk-secret" not in caught.value.render()  # somebody put the key in the wrong place


def test_a_version_may_stand_behind_the_address() -> None:
    url = "https://host/openai/deployments/m?api-version=2024-10-21"
    assert open_model(Choice(model="m", base_url=url)).name == "m"
    assert address(url) == (
        "https://host/openai/deployments/m/chat/completions?api-version=2024-10-21"
    )
    assert address("http://h:1/v1/") == "http://h:1/v1/chat/completions"


def test_an_extra_that_is_not_installed_says_how_to_get_it() -> None:
    try:
        import litellm  # noqa: F401
    except ImportError:
        assert code_of(open_model, Choice(model="litellm:a/b")) == "extra-missing"
    else:
        assert open_model(Choice(model="litellm:a/b")).name == "a/b"


@pytest.mark.parametrize("budget", [Budget(tokens=0), Budget(tokens=-1), Budget(usd=0.0)])
def test_a_budget_of_nothing_is_refused(budget: Budget) -> None:
    assert code_of(budget.checked) == "budget-zero"


def test_dollars_need_prices() -> None:
    assert code_of(Budget(usd=1.0, prices=Prices(prompt=1.0)).checked) == "prices-missing"
    prices = Prices(prompt=2.0, answer=10.0)
    assert Budget(usd=1.0, prices=prices).checked()
    assert prices.cost(Usage(prompt=500_000, completion=100_000)) == 2.0


def test_options_of_a_bench_are_read_and_wrong_ones_named() -> None:
    setting, journal = read_options(
        "model=m,base-url=http://h:1/v1,samples=2,optimise=true,journal=j"
    )
    assert (setting.choice.model, setting.choice.base_url) == ("m", "http://h:1/v1")
    assert (setting.terms.samples, setting.terms.optimise, journal) == (2, True, Path("j"))
    for text in (
        "sample=2", "samples=0", "samples=x", "model", "samples=1,samples=2", "concurrency=0",
        "attempts=0", "silence=nan", "temperature=nan", "price-prompt=-1", "price-answer=inf",
    ):  # fmt: skip
        assert code_of(read_options, text) == "usage"
    assert code_of(read_options, "budget-tokens=0") == "budget-zero"


def test_what_is_frozen_into_a_run_has_prices_and_no_address() -> None:
    setting, _ = read_options("model=m,base-url=http://h:1/v1,price-prompt=1,price-answer=2")
    text = json.dumps(setting.frozen)
    assert '"prompt": 1.0' in text
    assert "http" not in text
