"""Vector instructions on tensors in UB: arithmetic, casts, comparisons, reductions, gathers."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known
from npusmith.target.elementwise import VECTORS

_TESTS = "tests/twin_kernel/"
_MEANING = _TESTS + "test_conformance.py::test_a_row_computes_its_meaning_and_touches_nothing_else"
_SEMANTICS = _TESTS + "test_semantics.py::"
_COMPOUND = _TESTS + "test_compound.py::"
_BREADTH = _TESTS + "test_breadth.py::"
_SATURATED = _COMPOUND + "test_half_arithmetic_saturates_and_forgets_nan"
_WRAPPED = _COMPOUND + "test_int16_arithmetic_wraps_or_saturates"
_RELU_CAST = _COMPOUND + "test_add_relu_cast_rounds_after_relu"
_BY_C_NAME = "tests/twin_kernel/test_cnames.py"

_FLOATS = ("half", "float")
_WORDS = ("half", "bfloat16_t", "float", "int16_t", "uint16_t", "int32_t", "uint32_t")
_BOUNDARY = "page {}; table of boundary values"
_APPROXIMATE = "an approximation on the chip, correctly rounded here"
_ULP = "no error bound is published for this chip; at most 1 ulp here"


def _row(
    name: str,
    dtypes: tuple[str, ...],
    test: str,
    known: Known = Known.DOCUMENTED,
    source: str = "page {}",
    group: str = "vector",
    aka: tuple[str, ...] = (),
    note: str = "",
) -> Api:
    return Api(name, group, dtypes, known, source.format(name), test, aka, note)


_AS_SHORT = (
    "a count of 32-bit integers is of 16-bit elements (page), one of bytes too (published kernels)"
)


def _instruction(
    name: str,
    test: str,
    known: Known = Known.DOCUMENTED,
    note: str = "",
    aka: tuple[str, ...] = (),
) -> Api:
    """One of target/elementwise.py, which has its element types."""
    row = VECTORS[name]
    source = _BOUNDARY if known is Known.REPRODUCED else "page {}"
    return _row(name, (*row.dtypes, *row.mixed), test, known, source, aka=aka, note=note)


def _inferred(name: str, dtypes: tuple[str, ...], test: str, note: str) -> Api:
    return _row(name, dtypes, test, Known.INFERRED, note=note)


def _reduce(
    name: str,
    test: str,
    known: Known = Known.DOCUMENTED,
    aka: tuple[str, ...] = (),
    note: str = "",
) -> Api:
    return _row(name, _FLOATS, _SEMANTICS + test, known, group="reduce", aka=aka, note=note)


def _raw(name: str, dtypes: tuple[str, ...] = (), test: str = _BY_C_NAME) -> Api:
    note = "order of arguments from published kernels"
    return _row(name, dtypes, test, Known.INFERRED, "published kernels", "intrinsic", note=note)


_RAW_NAMES = (
    *(row.raw for row in VECTORS.values() if row.raw),
    *("vector_dup", "vcopy", "vsel", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"),
    *("vbrcb", "vtranspose", "scatter_vnchwconv_b16", "scatter_vnchwconv_b32"),
    *("scatter_vnchwconv_b8", "set_va_reg_sb", "set_cmpmask", "get_cmpmask"),
    *("vconv_f322f16", "vconv_f162f32", "vconv_deq", "vcmpv_lt", "vcmpvs_lt", "vcmp_lt"),
)

ROWS = (
    _instruction("Add", _SATURATED, Known.REPRODUCED),
    _instruction("Sub", _MEANING, Known.REPRODUCED),
    _instruction("Mul", _SATURATED, Known.REPRODUCED),
    _instruction("Max", _SATURATED, Known.REPRODUCED),
    _instruction("Min", _MEANING, Known.REPRODUCED),
    _instruction("Div", _MEANING, Known.INFERRED, "correctly rounded; no bound is published"),
    _instruction("And", _MEANING, note=_AS_SHORT),
    _instruction("Or", _MEANING, note=_AS_SHORT),
    _instruction("Not", _MEANING),
    _instruction("AddRelu", _BREADTH + "test_sums_with_relu"),
    _instruction("SubRelu", _BREADTH + "test_sums_with_relu"),
    _instruction(
        "FusedMulAdd",
        _COMPOUND + "test_a_fused_product_saturates_before_it_is_added",
        Known.REPRODUCED,
        "the product is rounded before it is added",
    ),
    _instruction("MulAddRelu", _MEANING, aka=("FusedMulAddRelu",)),
    _instruction(
        "MulAddDst",
        _COMPOUND + "test_a_fused_product_saturates_before_it_is_added",
        Known.REPRODUCED,
    ),
    _instruction(
        "Axpy",
        _SEMANTICS + "test_axpy_with_half_sources_multiplies_in_float",
        Known.REPRODUCED,
    ),
    _instruction("Abs", _MEANING),
    _instruction("Exp", _MEANING, Known.INFERRED, _ULP),
    _instruction("Ln", _MEANING, Known.INFERRED, _ULP),
    _instruction("Sqrt", _MEANING, Known.INFERRED, "correctly rounded; no bound is published"),
    _instruction("Rsqrt", _MEANING, Known.INFERRED, _APPROXIMATE),
    _instruction("Reciprocal", _MEANING, Known.INFERRED, _APPROXIMATE),
    _instruction("Relu", _MEANING, Known.REPRODUCED),
    _instruction("LeakyRelu", _MEANING, Known.REPRODUCED),
    _instruction("Adds", _MEANING, Known.REPRODUCED),
    _instruction("Muls", _MEANING, Known.REPRODUCED),
    _instruction("Maxs", _MEANING, Known.REPRODUCED),
    _instruction("Mins", _MEANING, Known.REPRODUCED),
    _instruction("ShiftLeft", _MEANING),
    _instruction("ShiftRight", _MEANING),
    _inferred(
        "AddReluCast",
        ("float->half", "half->int8_t", "int16_t->int8_t"),
        _RELU_CAST,
        "rounds to nearest even; sums of int16_t are exact before the cast",
    ),
    _inferred(
        "SubReluCast",
        ("float->half", "half->int8_t", "int16_t->int8_t"),
        _RELU_CAST,
        "rounds to nearest even; sums of int16_t are exact before the cast",
    ),
    _inferred(
        "MulCast",
        ("half->int8_t", "half->uint8_t"),
        _COMPOUND + "test_mul_cast_rounds_the_product_and_stops_at_the_limits",
        "the product is rounded to half, then to nearest even",
    ),
    _inferred(
        "AddDeqRelu",
        ("int32_t->half",),
        _COMPOUND + "test_add_deq_relu_scales_the_sum_of_integers",
        "the sum wraps at 32 bits and is rounded once",
    ),
    _row(
        "CastDequant",
        ("int16_t->int8_t", "int16_t->uint8_t", "int32_t->half"),
        _COMPOUND + "test_cast_dequant_fills_one_half_of_each_block",
        aka=("CastDeq",),
        note="rounding of the scaled number, to nearest even, is inferred",
    ),
    _row(
        "SetDeqScale",
        (),
        _COMPOUND + "test_cast_dequant_with_a_table_has_a_scale_for_each_lane",
        aka=("VdeqInfo", "set_deqscale"),
    ),
    _row(
        "BilinearInterpolation",
        ("half",),
        _COMPOUND + "test_bilinear_interpolation_matches_the_documented_example",
        Known.REPRODUCED,
        "page {}, its example",
        note="scratch is checked for what the documented steps need; the page asks for more",
    ),
    Api(
        "Cast",
        "vector",
        (
            *("int4b_t->half", "int8_t->half", "uint8_t->half", "int16_t->half", "int16_t->float"),
            *("half->int4b_t", "half->int8_t", "half->uint8_t", "half->int16_t", "half->int32_t"),
            *("half->float", "bfloat16_t->float", "bfloat16_t->int32_t", "int32_t->float"),
            *("int32_t->int16_t", "int32_t->int64_t", "int32_t->half", "float->half"),
            *("float->bfloat16_t", "float->int16_t", "float->int32_t", "float->int64_t"),
            *("float->float", "int64_t->int32_t", "int64_t->float"),
        ),
        Known.DOCUMENTED,
        "page Cast; table of boundary values",
        _COMPOUND + "test_casts_to_sixteen_bit_floats_saturate",
        note="the boundary table prints 65504 for half to int16_t overflow, which no int16_t holds",
    ),
    _row("Duplicate", _WORDS, _MEANING, aka=("DuplicateImpl",)),
    _row("Brcb", _WORDS, _SEMANTICS + "test_brcb_spreads_eight_elements_over_eight_blocks"),
    _instruction("CreateVecIndex", _SEMANTICS + "test_create_vec_index_counts_on_over_repeats"),
    _row("Gather", _WORDS, _SEMANTICS + "test_gather_takes_byte_offsets_from_a_base"),
    _row("Gatherb", ("uint16_t", "uint32_t"), _BREADTH + "test_gatherb_takes_whole_blocks"),
    _row("GatherMask", _WORDS, _SEMANTICS + "test_gather_mask_packs_what_its_pattern_takes"),
    _row(
        "Transpose",
        ("half", "int16_t", "uint16_t"),
        _SEMANTICS + "test_transposes_swap_rows_and_columns",
        group="layout",
    ),
    _row(
        "TransDataTo5HD",
        ("int8_t", "uint8_t", *_WORDS),
        _SEMANTICS + "test_transposes_swap_rows_and_columns",
        group="layout",
        aka=("TransDataTo5HDImpl",),
    ),
    # comparisons
    _row(
        "Compare",
        ("half", "float", "int32_t"),
        _MEANING,
        Known.REPRODUCED,
        _BOUNDARY,
        "compare",
        note="int32_t for EQ only; NE with NaN is false",
    ),
    _row(
        "Compares",
        ("half", "float", "int32_t"),
        _MEANING,
        Known.REPRODUCED,
        _BOUNDARY,
        "compare",
        ("CompareScalar",),
        "the saturation column of the table differs from Compare's for NaN with NE",
    ),
    _row("Select", _FLOATS, _MEANING, group="compare"),
    _row("GetCmpMask", (), _BREADTH + "test_the_compare_register_can_be_moved", group="compare"),
    _row("SetCmpMask", (), _BREADTH + "test_the_compare_register_can_be_moved", group="compare"),
    # masks and modes
    _row(
        "SetVectorMask",
        (),
        _SEMANTICS + "test_the_mask_register_is_used_when_the_call_sets_none",
        group="mask",
        aka=("set_vector_mask",),
    ),
    _row(
        "SetMaskCount",
        (),
        _SEMANTICS + "test_counter_mode_ignores_repeats_and_cuts_the_tail",
        group="mask",
        aka=("set_mask_count",),
    ),
    _row(
        "SetMaskNorm",
        (),
        _SEMANTICS + "test_counter_mode_ignores_repeats_and_cuts_the_tail",
        group="mask",
        aka=("set_mask_norm",),
    ),
    _row("ResetMask", (), _SEMANTICS + "test_a_count_form_leaves_a_full_mask_behind", group="mask"),
    _row(
        "SetSaturationFlag",
        (),
        _COMPOUND + "test_with_the_saturation_of_casts_off_the_low_bits_stay",
        group="mode",
        note="what a float beyond 64 bits leaves behind when casts do not saturate is a guess",
    ),
    _row(
        "GetSaturationFlag", (), _COMPOUND + "test_ctrl_bit_48_and_the_flag_are_one", group="mode"
    ),
    _row(
        "SetCtrlSpr",
        (),
        _COMPOUND + "test_ctrl_bit_48_and_the_flag_are_one",
        group="mode",
        aka=("set_ctrl",),
        note="bits 48, 56 and 59 act, the others are kept",
    ),
    _row(
        "GetCtrlSpr",
        (),
        _COMPOUND + "test_ctrl_bit_48_and_the_flag_are_one",
        group="mode",
        aka=("get_ctrl",),
    ),
    _row("ResetCtrlSpr", (), _BREADTH + "test_registers_are_reset", group="mode"),
    # reductions of the basic interface
    _reduce("WholeReduceSum", "test_whole_reduce_sum_adds_pairs_in_half", aka=("vcadd",)),
    _reduce("WholeReduceMax", "test_whole_reduce_max_gives_the_first_of_equals_and_its_index"),
    _reduce("WholeReduceMin", "test_whole_reduce_max_gives_the_first_of_equals_and_its_index"),
    _reduce("BlockReduceSum", "test_block_reductions_give_one_result_a_block"),
    _reduce("BlockReduceMax", "test_block_reductions_give_one_result_a_block"),
    _reduce("BlockReduceMin", "test_block_reductions_give_one_result_a_block"),
    _reduce("PairReduceSum", "test_pair_reduce_sum_adds_neighbours"),
    _reduce("RepeatReduceSum", "test_repeat_reduce_sum_gives_one_result_a_repeat"),
    _row(
        "ReduceSum",
        _FLOATS,
        _COMPOUND + "test_saturating_reduce_sum_gives_the_published_numbers",
        Known.REPRODUCED,
        "page {}; boundary values of a sum of 256",
        "reduce",
    ),
    _row(
        "ReduceMax",
        _FLOATS,
        _COMPOUND + "test_saturating_reduce_max_forgets_nan",
        Known.REPRODUCED,
        _BOUNDARY,
        "reduce",
    ),
    _reduce("ReduceMin", "test_reduce_max_with_index_counts_over_all_repeats"),
    _reduce(
        "GetReduceMaxMinCount",
        "test_results_of_the_last_reduction_can_be_read",
        aka=("GetReduceRepeatMaxMinSpr",),
    ),
    _reduce(
        "GetAccVal",
        "test_results_of_the_last_reduction_can_be_read",
        aka=("GetReduceRepeatSumSpr", "get_acc_val"),
    ),
    *(
        _row(name, _FLOATS, _BREADTH + "test_reductions_answer_to_their_new_names", group="reduce")
        for name in ("ReduceRepeat", "ReduceDataBlock", "ReducePairElem")
    ),
    *(_raw(name) for name in _RAW_NAMES),
)
