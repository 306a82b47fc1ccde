"""Whose tensors the ports of somebody's operator take."""

from __future__ import annotations

import numpy as np
import pytest

from npusmith.errors import TaskError
from npusmith.ir.dtypes import DType
from npusmith.ir.spec import Constant, OpSpec, Port, Source
from npusmith.task.ports import check_attrs, deal, share, take_inputs, types
from npusmith.twin.opdef import OpText, PortText


def ports(*kinds: str) -> list[PortText]:
    return [PortText(f"p{at}", kind, ()) for at, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("kinds", "count", "takes"),
    [
        (("REQUIRED", "REQUIRED"), 2, (1, 1)),
        (("REQUIRED", "REQUIRED"), 1, None),
        (("REQUIRED",), 2, None),
        (("REQUIRED", "OPTIONAL", "OPTIONAL"), 2, (1, 1, 0)),
        (("OPTIONAL", "REQUIRED"), 1, (0, 1)),
        (("DYNAMIC", "REQUIRED"), 4, (3, 1)),
        (("DYNAMIC", "DYNAMIC"), 4, (2, 2)),
        (("DYNAMIC", "DYNAMIC"), 3, None),
        (("DYNAMIC", "REQUIRED"), 1, None),
        ((), 0, ()),
    ],
)
def test_ports_share_tensors_by_their_kind(
    kinds: tuple[str, ...], count: int, takes: tuple[int, ...] | None
) -> None:
    assert share(ports(*kinds), count) == takes


def test_an_absent_tensor_is_none_and_a_list_stays_a_list() -> None:
    assert deal(ports("DYNAMIC", "OPTIONAL", "REQUIRED"), (2, 0, 1), [1, 2, 3]) == [[1, 2], None, 3]


def test_an_absent_tensor_has_the_type_of_the_column_that_fits() -> None:
    columns = ("DT_FLOAT", "DT_FLOAT16")
    op = OpText(
        "Op",
        (PortText("x", "REQUIRED", columns), PortText("b", "OPTIONAL", ("DT_INT32", "DT_INT8"))),
        (PortText("y", "REQUIRED", columns),),
        (),
    )
    half = np.zeros(2, np.float16)
    assert types(op, [half, None, half]) == (DType.FLOAT16, DType.INT8, DType.FLOAT16)


def test_an_attribute_that_is_not_declared_is_refused() -> None:
    op = OpText("Op", (), (), ("alpha",))
    check_attrs(op, {"alpha": 1.0})
    with pytest.raises(TaskError, match="no attribute beta"):
        check_attrs(op, {"beta": 1})


def test_a_constant_of_the_project_goes_where_the_task_has_nothing():
    port = Port("c", DType.FLOAT32, (), Source.CONSTANT, target="lifted_tensor_0")
    one = Constant("lifted_tensor_0", DType.FLOAT32, (), "AACAPw==")
    spec = OpSpec("op", (port,), (), constants=(one,))
    op = OpText("Op", (PortText("c", "REQUIRED", ("DT_FLOAT",)),), (), ())
    assert take_inputs(op, spec, [], {})[0].tolist() == 1.0
    assert take_inputs(op, spec, [], {"lifted_tensor_0": "the task's"}) == ["the task's"]
