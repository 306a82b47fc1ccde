"""A preparation whose outputs are the model's own and values on the way, for the judge of kernels.

The captured program is the model then. It holds for the shapes that it was captured at, so that
each set of other shapes has a program of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from npusmith.errors import TaskError
from npusmith.task import compare, shapes
from npusmith.task.captured import Captured
from npusmith.task.export import export_graph
from npusmith.task.golden import Golden
from npusmith.task.intermediates import with_intermediates
from npusmith.task.parameter_draws import put
from npusmith.task.recurrent_layers import as_loops
from npusmith.task.user import Inputs, user_code
from npusmith.task.varying_sizes import most_elements
from npusmith.task.wire import BRANCH, RAISES


class CapturedIntermediates(Captured):
    """Its sets of inputs: the random ones, and one of each of the shapes that are given."""

    def _extend(self) -> None:
        self.own, self.plain = self.model, self.captured.graph
        self.captured = with_intermediates(self.captured, self.orders.intermediates, self.path)
        with user_code(self.path, "the captured graph", "task-export"):
            self.model = as_loops(self.captured.program.module())
        self.base_references = self._reference(self.base)

    def _try_all(self, groups: list[Any], sets: Sequence[tuple[str, list[shapes.Shape]]]) -> None:
        self._random_trials()
        for i, given in enumerate(self.orders.given):
            sized, seed = list(given), self.orders.seeds[0] + i + 1
            name = f"{BRANCH} {shapes.show(sized)}"
            if self.orders.bounded and name not in self.orders.bounded:
                continue  # asked for before, and known
            self.stage(f"shapes {shapes.show(sized)}")
            inputs = self._resized(sized, seed)
            if why := self._move_to(inputs):
                self.skip(name, "shape", seed, why)
            else:
                self._try(name, "shape", seed, inputs)

    def _move_to(self, inputs: Inputs) -> str:
        """Make the program captured at these shapes the model; or say why it is none of these."""
        try:
            captured = export_graph(self.own, inputs, self.path, self.plain)
        except TaskError as error:
            return f"{RAISES}: {error.message}"
        graph = captured.graph
        if most_elements(graph) > self.orders.value_elements:
            return "values on the way have too many elements there"
        if found := compare.difference(self.plain, graph):
            return found
        extended = with_intermediates(captured, self.orders.intermediates, self.path)
        self.graphs[self._key(inputs)] = extended.graph
        self.model = as_loops(extended.program.module())
        models = [self.model]
        for values in self.draws.values[1:]:
            models.append(copy.deepcopy(self.model))
            put(models[-1], values)
        self.draws.models = models
        self.goldens = [Golden(model, self.path) for model in models]
        return ""
