"""A program for the test of kills: sessions against a server, with a judge that takes no time.

python lightrun.py URL FOLDER SESSIONS
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from npusmith.agent.assessment import Assessment, Note, Step
from npusmith.agent.budget import Budget
from npusmith.agent.endpoint import Endpoint, Settings
from npusmith.agent.extract import find_program
from npusmith.agent.policy import Terms
from npusmith.agent.replay import Recorder
from npusmith.agent.route import Draft
from npusmith.agent.session import Session, SessionOptions
from npusmith.agent.shots import Features
from npusmith.agent.talk import Answer
from npusmith.store.turns import open_journal


class NumberRoute:
    """A program is right when its number is a multiple of seven."""

    name = rules = "tile"
    kind = "python"
    chip = "910B2"
    features = Features(category="x", axis="none", rank=1, row=1, dtypes=(), ops=())

    def __init__(self, session: int) -> None:
        self._session = session

    def task(self) -> str:
        return f"session {self._session}"

    def help(self, draft: Draft | None, assessment: Assessment | None) -> str:
        return ""

    def read(self, answer: Answer) -> Draft:
        return self.edit(find_program(answer))

    def edit(self, text: str) -> Draft:
        return Draft({"x": text}, text)

    def names(self, text: str) -> tuple[str, ...]:
        return ()

    def assess(self, draft: Draft, folder: Path) -> Assessment:
        time.sleep(0.004)  # so that kills find something to interrupt
        number = int(re.findall(r"\d+", draft.text)[0])
        if number % 7 == 0:
            return Assessment(step=Step.RACE_FREE, correct=True, share=1.0)
        note = Note(code="agent-values", message=f"{number} is not a multiple of seven")
        return Assessment(step=Step.LEGAL, share=1 / (1 + number % 7), notes=(note,))


def main() -> None:
    url, folder, sessions = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    endpoint = Endpoint(Settings(model="m", url=url, concurrency=2))
    model = Recorder(endpoint, folder / "calls.jsonl")
    with open_journal(folder) as store:
        for number in range(sessions):
            name = f"s{number}"
            store.begin(name, "")
            Session(
                name,
                NumberRoute(number),
                model,
                store,
                Terms(samples=2, rounds=6, seed=number, max_tokens=50),
                Budget(),
                options=SessionOptions(concurrency=2),
            ).run()


if __name__ == "__main__":
    main()
