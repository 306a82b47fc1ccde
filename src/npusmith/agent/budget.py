"""What a run may spend, and what a call costs. Prices are frozen into the run that uses them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from npusmith.agent.talk import Request, Usage, tokens_in
from npusmith.errors import NpusmithError

_MILLION = 1_000_000


Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Prices(BaseModel):
    """Dollars for a million tokens; None: not known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: Price | None = None
    answer: Price | None = None

    def cost(self, usage: Usage) -> float:
        """Dollars; 0 where the prices are not known."""
        prompt, answer = self.prompt or 0.0, self.answer or 0.0
        return (usage.prompt * prompt + usage.completion * answer) / _MILLION


class Budget(BaseModel):
    """Of a whole run, with all its sessions. None: no limit of this kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: int | None = _MILLION
    usd: float | None = None
    prices: Prices = Prices()

    def checked(self) -> Budget:
        """Itself; raises budget-zero and prices-missing."""
        for name, value in (("tokens", self.tokens), ("usd", self.usd)):
            if value is not None and not value > 0:
                raise NpusmithError("budget-zero", f"the budget of {name} is {value:g}")
        if self.usd is not None and None in (self.prices.prompt, self.prices.answer):
            raise NpusmithError(
                "prices-missing", "the budget is in dollars, the prices are not known"
            )
        return self

    def worst(self, request: Request) -> tuple[int, float]:
        """Tokens and dollars that a call takes at most."""
        prompt = tokens_in("".join(item.content for item in request.messages))
        usage = Usage(prompt=prompt, completion=request.max_tokens)
        return usage.total, self.prices.cost(usage)
