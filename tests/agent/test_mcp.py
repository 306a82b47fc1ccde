"""`npusmith mcp` as a coding agent meets it: the protocol's own client, over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agentcases import PROGRAM, TASK

mcp = pytest.importorskip("mcp")


async def talk(
    folder: Path, *calls: tuple[str, dict[str, Any]]
) -> tuple[list[str], list[dict[str, Any]]]:
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "npusmith", "mcp", "--root", str(folder)],
        env=dict(os.environ),
    )  # fmt: skip
    async with mcp.Client(server, read_timeout_seconds=120) as client:
        tools = await client.list_tools()
        answers = []
        for name, arguments in calls:
            found = await client.call_tool(name, arguments)
            text = found.content[0].text
            answers.append({"refused": text} if found.is_error else json.loads(text))
        return [tool.name for tool in tools.tools], answers


def test_a_coding_agent_checks_a_program_and_gets_findings_as_data(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TASK)
    typo = PROGRAM.replace("with compute:", "with computing:")
    names, answers = asyncio.run(
        talk(
            tmp_path,
            ("language", {}),
            ("check", {"text": PROGRAM}),
            ("check", {"text": typo}),
            ("check", {}),
            ("run", {"project": "no/such/project"}),
            ("search-knowledge", {"words": "tail"}),
            ("try", {"task": "tiny.py", "text": PROGRAM.replace("1.0, n", "2.0, n")}),
            ("search-knowledge", {"codes": ["no-such-code"]}),
            ("check", {"path": "/etc/passwd"}),
            ("run", {"project": ".", "task": "../../secret.py"}),
            ("generate", {"task": "t.py", "out": "/elsewhere/out"}),
            ("generate", {"task": "t.py", "out": "o", "options": "model=scripted:/etc/passwd"}),
            ("generate", {"task": "t.py", "out": "o", "options": "model=m,bogus=1"}),
            ("check", {"text": "x" * (2 << 20)}),
            ("check", {"text": 5}),
        )
    )
    wanted = {"check", "run", "profile", "search-knowledge", "generate", "language", "try"}
    assert wanted <= set(names)
    language, right, wrong, nothing, missing, knowledge, attempts, *bad = answers
    assert "with compute" in language["rules"] and "reduce_sum" in language["reference"]
    assert right["verdict"] == "pass"
    assert wrong["error"]["code"] == "lang-statement"
    assert "did you mean 'compute'?" in wrong["findings_text"]
    assert "line 24: with computing:" in wrong["findings_text"]
    assert wrong["error"]["file"] == "program.tile.py"  # and no folder of this machine
    assert nothing["error"]["code"] == "usage"
    assert missing["error"]["code"] == "file-missing"
    assert knowledge["error"]["code"] == "usage"
    assert (attempts["verdict"], attempts["reached"]) == ("fail", "legal")
    assert "error[agent-values]: in NumPy, set of inputs" in attempts["findings_text"]
    assert "valid string" in bad.pop()["refused"]
    assert [answer["error"]["code"] for answer in bad] == [
        "usage", "file-denied", "file-denied", "file-denied", "file-denied", "usage",
        "lang-too-large",
    ]  # fmt: skip
