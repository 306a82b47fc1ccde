"""Pipes, queues, buffers, pools, tensors and their descriptors."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_TESTS = "tests/twin_kernel/"
_BREADTH = _TESTS + "test_breadth.py::"
_QUEUES = _BREADTH + "test_a_queue_tells_what_it_holds"
_POOLS = _BREADTH + "test_pools_that_share_a_piece_take_turns"
_OWN_POOL = _BREADTH + "test_a_pool_of_the_kernels_own_places_its_queues"
_SPILL = _BREADTH + "test_the_spill_buffer_gives_back_what_it_took"
_PLACED = _BREADTH + "test_tensors_without_a_pipe_lie_one_after_the_other"
_STD = _BREADTH + "test_the_documented_part_of_the_library_is_there"
_TENSOR = _TESTS + "test_semantics.py::test_scalars_are_read_and_written"
_LISTS = _BREADTH + "test_a_tensor_list_gives_shapes_and_data"


def _row(
    name: str,
    test: str,
    known: Known = Known.DOCUMENTED,
    group: str = "resource",
    aka: tuple[str, ...] = (),
    note: str = "",
) -> Api:
    return Api(name, group, (), known, f"page {name.rpartition('::')[2]}", test, aka, note)


ROWS = (
    *(_row(f"TPipe::{name}", _QUEUES) for name in ("InitBuffer", "Destroy", "Reset", "Init")),
    _row("TPipe::InitBufPool", _POOLS),
    _row("TBufPool::InitBufPool", _POOLS),
    _row("TBufPool::InitBuffer", _POOLS),
    _row("TBufPool::Reset", _POOLS, note="InitBuffer after it gives the same memory again (guess)"),
    *(
        _row(name, _OWN_POOL)
        for name in (
            *("GetBufHandle", "SetCurAddr", "GetCurAddr", "SetCurBufSize", "GetCurBufSize"),
            *("InitStartBufHandle", "InitBufHandle"),
        )
    ),
    _row("TPipe::InitSpmBuffer", _SPILL),
    _row("TPipe::WriteSpmBuffer", _SPILL, note="offsets are taken as bytes"),
    _row("TPipe::ReadSpmBuffer", _SPILL, note="offsets are taken as bytes"),
    _row("TPipe::AllocEventID", _QUEUES),
    _row("TPipe::ReleaseEventID", _QUEUES),
    _row(
        "TPipe::FetchEventID",
        _QUEUES,
        note="keeps no id: two fetched ids of one event are one, two SetFlags of it an error (page:"
        " undefined)",
    ),
    _row(
        "TPipe::GetBaseAddr", _PLACED, Known.INFERRED, note="the host address of the memory's start"
    ),
    _row("TPipe::GetAbsAddr", _PLACED),
    _row("GetTPipePtr", _QUEUES),
    _row("PopStackBuffer", _TESTS + "test_faults_breadth.py::test_the_faulty_kernel_is_caught"),
    *(
        _row(f"TQue::{name}", _QUEUES)
        for name in (
            *("AllocTensor", "FreeTensor", "EnQue", "DeQue", "VacantInQue", "HasTensorInQue"),
            *("GetTensorCountInQue", "HasIdleBuffer", "FreeAllEvent"),
        )
    ),
    _row("TQueBind", _QUEUES),
    _row("TBuf::Get", _QUEUES),
    _row("TBuf::GetWithOffset", _PLACED),
    _row("LocalMemAllocator", _PLACED),
    _row("InitSocState", _PLACED),
    _row("LocalTensor", _TENSOR, group="data"),
    _row("GlobalTensor", _TENSOR, group="data"),
    *(
        _row(f"LocalTensor::{name}", _TENSOR, group="data")
        for name in (
            *("GetValue", "SetValue", "ReinterpretCast", "GetSize", "SetSize", "GetLength"),
            *("GetPhyAddr", "GetPosition", "SetAddrWithOffset", "SetUserTag", "GetUserTag"),
            *("SetShapeInfo", "GetShapeInfo", "SetBufferLen"),
        )
    ),
    *(
        _row(f"GlobalTensor::{name}", _TENSOR, group="data")
        for name in ("SetGlobalBuffer", "SetL2CacheHint")
    ),
    _row(
        "ShapeInfo", _BREADTH + "test_shapes_know_their_size", group="data", aka=("GetShapeSize",)
    ),
    _row(
        "ListTensorDesc",
        _LISTS,
        Known.INFERRED,
        "data",
        note="offset and addresses are established, the place of the shapes is a guess",
    ),
    _row(
        "TensorDesc",
        _LISTS,
        Known.INFERRED,
        "data",
        note="offset and addresses are established, the place of the shapes is a guess",
    ),
    *(
        _row(f"Std::{name}", _STD, group="std")
        for name in (
            *("tuple", "make_tuple", "get", "tie", "max", "min", "is_same", "enable_if"),
            *("conditional", "is_convertible", "is_base_of", "integral_constant"),
            *("index_sequence", "tuple_size", "tuple_element"),
        )
    ),
    *(
        _row(name, _STD, Known.INFERRED, "std", note="from its use in published kernels")
        for name in ("IsSameType", "Conditional", "DivCeil", "CeilDivision", "AlignUp")
    ),
)
