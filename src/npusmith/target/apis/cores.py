"""Who a core is, and barriers between the cores of a launch."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_TEST = "tests/twin_kernel/test_cube.py::"
_FORMS = "tests/twin_kernel/test_matmul.py::test_documented_forms_compile"


def _row(
    name: str, source: str, test: str, *, known: Known = Known.DOCUMENTED,
    group: str = "core sync", aka: tuple[str, ...] = (), note: str = "",
) -> Api:  # fmt: skip
    return Api(name, group, (), known, source, test, aka, note)


_WHO = _TEST + "test_every_core_knows_who_it_is"
_FLAGS = _TEST + "test_flags_hand_data_from_vector_to_cube_cores_and_back"
_TURNS = _TEST + "test_vector_cores_take_turns_in_order"

ROWS = (
    _row("GetBlockIdx", "GetBlockIdx", _WHO, group="system variables", aka=("get_block_idx",)),
    _row("GetBlockNum", "GetBlockNum", _WHO, group="system variables", aka=("get_block_num",)),
    _row("GetSubBlockIdx", "GetSubBlockIdx", _WHO, group="system variables",
         aka=("get_subblockid",)),
    _row("GetSubBlockNum", "GetSubBlockNum, table of kernel types", _WHO,
         group="system variables", aka=("get_subblockdim",)),
    _row("GetTaskRatio", "GetTaskRatio, table of kernel types", _WHO, group="system variables",
         aka=("GetTaskRation",)),
    _row("CrossCoreSetFlag", "CrossCoreSetFlag, core synchronisation: key features", _FLAGS,
         aka=("ffts_cross_core_sync",),
         note="a counter past 15 is reported; whether the chip hangs or traps is not said"),
    _row("CrossCoreWaitFlag", "CrossCoreWaitFlag", _FLAGS, aka=("wait_flag_dev",)),
    _row("SyncAll", "SyncAll", _TEST + "test_everybody_meets_everybody"),
    _row("IBSet", "IBSet", "tests/twin_kernel/test_semantics.py"),
    _row("IBWait", "IBWait", "tests/twin_kernel/test_semantics.py"),
    _row("InitDetermineComputeWorkspace", "InitDetermineComputeWorkspace", _TURNS),
    _row("WaitPreBlock", "WaitPreBlock", _TURNS),
    _row("NotifyNextBlock", "NotifyNextBlock", _TURNS),
    _row("NotifyEvent", "use in published kernels", _FORMS, known=Known.INFERRED,
         note="taken for CrossCoreSetFlag of mode 2"),
    _row("WaitEvent", "use in published kernels", _FORMS, known=Known.INFERRED,
         note="taken for CrossCoreWaitFlag"),
)  # fmt: skip
