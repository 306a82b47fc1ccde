"""Copies between global memory and UB and inside UB, atomics, caches."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_TESTS = "tests/twin_kernel/"
_SEMANTICS = _TESTS + "test_semantics.py::"
_BREADTH = _TESTS + "test_breadth.py::"
_RAW = _BREADTH + "test_c_style_copies_count_blocks_or_bytes"
_ATOMIC = _BREADTH + "test_the_atomic_mode_can_be_set_in_parts"
_SUMMED = ("float", "half", "bfloat16_t", "int8_t", "int16_t", "int32_t")
_ANY = (
    *("half", "bfloat16_t", "float", "int4b_t", "int8_t", "uint8_t", "int16_t", "uint16_t"),
    *("int32_t", "uint32_t", "int64_t", "uint64_t", "bool"),
)


def _row(
    name: str,
    test: str,
    dtypes: tuple[str, ...] = (),
    known: Known = Known.DOCUMENTED,
    group: str = "move",
    aka: tuple[str, ...] = (),
    note: str = "",
) -> Api:
    return Api(name, group, dtypes, known, f"page {name}", test, aka, note)


def _raw(name: str, *aka: str) -> Api:
    note = "order of arguments from published kernels"
    source = "published kernels"
    return Api(name, "intrinsic", (), Known.INFERRED, source, _RAW, aka, note)


ROWS = (
    _row("DataCopy", _SEMANTICS + "test_block_copies_count_gaps_from_end_to_start", _ANY),
    _row(
        "DataCopyPad",
        _SEMANTICS + "test_padded_rows_are_filled_left_right_and_up_to_the_block",
        tuple(name for name in _ANY if name != "int4b_t"),
        note="padding without isPad is undefined on the chip; NaN bits here",
    ),
    _row("SliceInfo", _SEMANTICS + "test_slices_collect_bursts_of_a_matrix", _ANY),
    _row(
        "Nz2NdParamsFull",
        _BREADTH + "test_fractals_in_ub_become_rows",
        ("half", "float", "int8_t", "int16_t", "int32_t"),
    ),
    _row("SetPadValue", _BREADTH + "test_the_pad_value_fills_the_rest_of_the_block", _ANY),
    _row(
        "Copy",
        _SEMANTICS + "test_copy_moves_the_lanes_of_its_mask",
        ("half", "bfloat16_t", "float", "int16_t", "uint16_t", "int32_t", "uint32_t"),
    ),
    _row(
        "InitOutput",
        _SEMANTICS + "test_init_output_fills_global_memory",
        _ANY,
        aka=("InitGlobalMemory",),
    ),
    _row("SetAtomicAdd", _SEMANTICS + "test_atomic_add_accumulates_in_global_memory", _SUMMED),
    _row("SetAtomicMax", _SEMANTICS + "test_atomic_max_keeps_the_larger", _SUMMED),
    _row("SetAtomicMin", _ATOMIC, _SUMMED),
    _row(
        "DisableDmaAtomic",
        _SEMANTICS + "test_atomic_add_accumulates_in_global_memory",
        aka=("SetAtomicNone", "set_atomic_none"),
    ),
    _row("SetAtomicType", _ATOMIC, _SUMMED),
    _row("SetStoreAtomicConfig", _ATOMIC),
    _row("GetStoreAtomicConfig", _ATOMIC),
    _row(
        "DataCacheCleanAndInvalid",
        _BREADTH + "test_cache_calls_name_legal_addresses",
        group="cache",
    ),
    _row("DataCachePreload", _BREADTH + "test_cache_calls_name_legal_addresses", group="cache"),
    _row("ICachePreLoad", _BREADTH + "test_cache_calls_name_legal_addresses", group="cache"),
    _row(
        "GetICachePreloadStatus",
        _BREADTH + "test_cache_calls_name_legal_addresses",
        known=Known.INFERRED,
        group="cache",
        note="always done: no instruction cache on the twin",
    ),
    _raw("copy_ubuf_to_ubuf", "DataCopyUB2UBImpl"),
    _raw("copy_gm_to_ubuf", "DataCopyGM2UBImpl"),
    _raw("copy_ubuf_to_gm", "DataCopyUB2GMImpl"),
    _raw("copy_gm_to_ubuf_align_b8", "copy_gm_to_ubuf_align_b16", "copy_gm_to_ubuf_align_b32"),
    _raw("copy_ubuf_to_gm_align_b8", "copy_ubuf_to_gm_align_b16", "copy_ubuf_to_gm_align_b32"),
    _raw("set_atomic_add", "set_atomic_max", "set_atomic_min", "set_atomic_f32", "set_atomic_f16"),
)
