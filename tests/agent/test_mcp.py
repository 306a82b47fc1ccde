"""`npusmith mcp` as a coding agent meets it: the protocol's own client, over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agentcases import PROGRAM, TASK

from npusmith.agent.direct import example

mcp = pytest.importorskip("mcp")

CALLS = (
    ("language", {}),
    ("check", {"text": PROGRAM}),
    ("check", {"text": PROGRAM.replace("with compute:", "with computing:")}),
    ("check", {}),
    ("run", {"project": "no/such/project"}),
    ("search-knowledge", {"words": "tail"}),
    ("try", {"task": "tiny.py", "text": PROGRAM.replace("1.0, n", "2.0, n")}),
    ("check", {"text": example().replace("Div(y, x, y, n)", "Div(y, x, y)")}),
    ("search-knowledge", {"codes": ["no-such-code"]}),
    ("check", {"path": "/etc/passwd"}),
    ("check", {"files": {"../x.cpp": "int x;"}}),
    ("run", {"project": ".", "task": "../../secret.py"}),
    ("generate", {"task": "t.py", "out": "/elsewhere/out"}),
    ("generate", {"task": "t.py", "out": "o", "options": "model=scripted:/etc/passwd"}),
    ("generate", {"task": "t.py", "out": "o", "options": "model=m,bogus=1"}),
    ("check", {"text": "x" * (2 << 20)}),
    ("check", {"text": PROGRAM, "strict": True}),
    ("check", {"text": 5}),
)


@dataclass
class Talk:
    """`answers`: what tools said, with `failed` where the protocol says so. `told`: progress."""

    tools: dict[str, Any] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    skill: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


async def talk(folder: Path) -> Talk:
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "npusmith", "mcp", "--root", str(folder)],
        env=dict(os.environ),
    )  # fmt: skip
    done = Talk()

    async def progress(count: float, total: float | None, message: str | None) -> None:
        done.told.append(message or "")

    async with mcp.Client(server, read_timeout_seconds=120) as client:
        done.tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        done.skill = (await client.read_resource("npusmith://skill")).contents[0].text
        for name, arguments in CALLS:
            found = await client.call_tool(name, arguments, progress_callback=progress)
            text = found.content[0].text
            answer = json.loads(text) if text.startswith("{") else {"refused": text}
            done.answers.append(answer | {"failed": bool(found.is_error)})
        whole = await client.read_resource(done.answers[1]["detail"])
        done.detail = json.loads(whole.contents[0].text)
    return done


def test_a_coding_agent_checks_a_program_and_gets_findings_as_data(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TASK)
    done = asyncio.run(talk(tmp_path))
    language, right, wrong, nothing, missing, knowledge, attempts, cpp, *bad = done.answers
    assert "with compute" in language["rules"] and "reduce_sum" in language["reference"]
    assert right["verdict"] == "pass" and "provenance" not in right
    assert done.detail["verdict"] == "pass" and "provenance" in done.detail
    assert wrong["error"]["code"] == "lang-statement" and not wrong["failed"]  # the kernel's fault
    assert "did you mean 'compute'?" in wrong["findings_text"]
    assert "line 24: with computing:" in wrong["findings_text"]
    assert wrong["error"]["file"] == "program.tile.py"  # and no folder of this machine
    assert nothing["error"]["code"] == "usage" and nothing["failed"]
    assert missing["error"]["code"] == "file-missing" and missing["failed"]
    assert knowledge["error"]["code"] == "usage"
    assert (attempts["verdict"], attempts["reached"]) == ("fail", "legal")
    assert "error[agent-values] at tiny_custom.tile.py:29: in NumPy" in attempts["findings_text"]
    assert "  line 29: store(y[piece * TILE], yt, n)" in attempts["findings_text"]
    assert "stored by core" in attempts["findings_text"]
    assert "try: the formula, or its order of operations" in attempts["findings_text"]
    assert "kernel.asc:" in cpp["findings_text"] and "Div(y, x, y);" in cpp["findings_text"]
    assert any(text.startswith("capture: ") for text in done.told)
    assert "valid string" in bad.pop()["refused"]
    assert "Extra inputs are not permitted" in bad.pop()["refused"]
    assert all(answer["failed"] for answer in bad)
    assert [answer["error"]["code"] for answer in bad] == [
        "usage", "file-denied", "file-denied", "file-denied", "file-denied", "file-denied",
        "usage", "lang-too-large",
    ]  # fmt: skip


def test_tools_say_what_they_take_and_whether_they_leave_anything(tmp_path: Path) -> None:
    from npusmith.agent.mcp_server import make_server

    server = make_server("910B2", "", tmp_path)
    tools = {tool.name: tool for tool in asyncio.run(server.list_tools())}
    assert {
        "check", "run", "profile", "search-knowledge", "generate", "language", "try",
    } == set(tools)  # fmt: skip
    for name, tool in tools.items():
        assert tool.description and tool.annotations.title == name
        assert tool.input_schema["additionalProperties"] is False
        fields = tool.input_schema["properties"]
        assert fields and all(row.get("description") for row in fields.values()), name
    assert tools["check"].annotations.read_only_hint is True
    assert tools["generate"].annotations.read_only_hint is False
    assert set(tools["try"].input_schema["properties"]) == {"task", "text", "files", "out"}
    skill = asyncio.run(server.read_resource("npusmith://skill"))
    assert "# Writing Ascend NPU operators with npusmith" in next(iter(skill)).content


def test_only_the_last_whole_answers_are_kept() -> None:
    from npusmith.agent.mcp_server import Documents, shortened

    kept = Documents()
    first = shortened({"verdict": "pass", "trials": [{"passed": True}, {"passed": False}]}, kept)
    assert first["sets_of_inputs"] == "1 of 2 right" and "trials" not in first
    number = first["detail"].rpartition("/")[2]
    assert json.loads(kept.read(number))["trials"][0]["passed"]
    assert shortened({"verdict": "pass"}, kept) == {"verdict": "pass"}
    for _ in range(16):
        kept.keep({})
    with pytest.raises(ValueError, match="not kept"):
        kept.read(number)
