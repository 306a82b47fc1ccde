"""A session as a page: what was asked, answered and found, turn by turn, and what it took.

Prompts and replies are strangers' texts: everything is escaped, and the page holds no script.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

from npusmith.agent.assessment import Assessment, render
from npusmith.store.turns import Journal, Turn

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
pre {{ background: #f4f4f4; padding: .8rem; overflow-x: auto; white-space: pre-wrap; }}
h2 {{ margin-top: 2.5rem; }} summary {{ cursor: pointer; }} .right {{ color: #176f2c; }}
</style></head><body>
"""


def write_page(store: Journal, session: str) -> Path:
    """The page of a session, in the journal's folder."""
    folder = store.path.parent / "pages"
    folder.mkdir(exist_ok=True)
    path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', session)[:120]}.html"
    path.write_text(page(store.turns(session), session), encoding="utf-8", errors="replace")
    return path


def page(turns: list[Turn], session: str) -> str:
    """The text of the page."""
    title = html.escape(f"{session}: {told(turns)}")
    parts = [_HEAD.format(title=title), f"<h1>{title}</h1>"]
    parts += ["\n".join(_turn(turn)) for turn in turns]
    return "\n".join([*parts, "</body></html>\n"])


def told(turns: list[Turn]) -> str:
    """Turns and tokens in words; calls that failed took what nobody counted."""
    asked = [turn for turn in turns if turn.request]
    used = [_usage(turn) for turn in asked]
    prompt, answer = (sum(item[at] for item in used) for at in (0, 1))
    return (
        f"{len(asked)} calls in {len(turns)} turns, {prompt:,} tokens of prompts and "
        f"{answer:,} of answers"
    )


def _usage(turn: Turn) -> tuple[int, int]:
    answer = json.loads(turn.reply).get("answer") if turn.reply else None
    usage = answer["usage"] if answer else {"prompt": 0, "completion": 0}
    return int(usage["prompt"]), int(usage["completion"])


def _turn(turn: Turn) -> Iterator[str]:
    plan = json.loads(turn.data)
    after = "" if plan.get("parent") is None else f", of turn {plan['parent'] + 1}"
    by = "an item of knowledge" if plan.get("edit") else "the model"
    yield f"<h2>Turn {turn.number + 1}: {html.escape(str(plan['goal']))}{after}, by {by}</h2>"
    if turn.request:
        prompt, answer = _usage(turn)
        yield f"<p>{prompt:,} tokens of prompt, {answer:,} of answer</p>"
        for message in json.loads(turn.request)["messages"]:
            yield _folded(f"Prompt: {message['role']}", message["content"])
    reply = json.loads(turn.reply) if turn.reply else {}
    said = (reply.get("answer") or {}).get("text")
    yield _folded("Reply", said) if said else _shown(str(reply.get("message", "no answer")))
    if turn.outcome:
        found = Assessment.model_validate(json.loads(turn.outcome)["assessment"])
        kind = "right" if found.correct else "wrong"
        yield f'<p class="{kind}">{html.escape(_result(found))}</p>'
        if found.notes:
            yield _shown(render(found.notes))


def _result(found: Assessment) -> str:
    step = found.step.name.lower().replace("_", " ")
    if not found.correct:
        return f"not right; reached: {step}; {found.share:.0%} of the sets of inputs"
    return "right" + (f", {found.us:.2f} us by the timing model" if found.us is not None else "")


def _folded(title: str, text: str) -> str:
    summary = f"<summary>{html.escape(title)}, {len(text):,} characters</summary>"
    return f"<details>{summary}{_shown(text)}</details>"


def _shown(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"
