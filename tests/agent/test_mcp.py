"""`npusmith mcp` as a coding agent meets it: the protocol's own client, over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import pytest
from agentcases import PROGRAM

mcp = pytest.importorskip("mcp")


async def talk(*calls: tuple[str, dict[str, Any]]) -> tuple[list[str], list[dict[str, Any]]]:
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "npusmith", "mcp"], env=dict(os.environ)
    )
    async with mcp.Client(server, read_timeout_seconds=120) as client:
        tools = await client.list_tools()
        answers = []
        for name, arguments in calls:
            found = await client.call_tool(name, arguments)
            answers.append(json.loads(found.content[0].text))
        return [tool.name for tool in tools.tools], answers


def test_a_coding_agent_checks_a_program_and_gets_findings_as_data() -> None:
    typo = PROGRAM.replace("with compute:", "with computing:")
    names, answers = asyncio.run(
        talk(
            ("language", {}),
            ("check", {"text": PROGRAM}),
            ("check", {"text": typo}),
            ("check", {}),
            ("run", {"project": "/no/such/project"}),
            ("search-knowledge", {"words": "tail"}),
        )
    )
    wanted = {"check", "run", "profile", "search-knowledge", "generate", "language"}
    assert wanted <= set(names)
    language, right, wrong, nothing, missing, knowledge = answers
    assert "with compute" in language["rules"] and "reduce_sum" in language["reference"]
    assert right["verdict"] == "pass"
    assert wrong["error"]["code"] == "lang-statement"
    assert "did you mean 'compute'?" in wrong["findings_text"]
    assert nothing["error"]["code"] == "usage"
    assert missing["error"]["code"] == "file-missing"
    assert knowledge["error"]["code"] == "usage"
