"""Instructions of the cube core: loads, products, the way out of L0C."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_TEST = "tests/twin_kernel/test_cube.py::"
_ANY = ("int8_t", "uint8_t", "int16_t", "uint16_t", "half", "bfloat16_t", "int32_t", "uint32_t",
        "float")  # fmt: skip
_WIDE = ("int16_t", "uint16_t", "half", "bfloat16_t", "int32_t", "uint32_t", "float")
_MOVED = ("int4b_t", *_ANY)  # LoadData takes int4b_t from L1 only
_SQUARE = ("int4b_t", "int8_t", "uint8_t", "half", "bfloat16_t", "int32_t", "uint32_t", "float")
_MMAD = ("half->float", "bfloat16_t->float", "float->float", "int8_t->int32_t",
         "int4b_t->int32_t")  # fmt: skip
_FIX = (
    "float->float", "float->half", "float->bfloat16_t", "float->int8_t", "float->uint8_t",
    "int32_t->int32_t", "int32_t->half", "int32_t->int8_t", "int32_t->uint8_t",
)  # fmt: skip


def _row(
    name: str, dtypes: tuple[str, ...], source: str, test: str, *,
    known: Known = Known.DOCUMENTED, aka: tuple[str, ...] = (), note: str = "",
) -> Api:  # fmt: skip
    return Api(name, "cube", dtypes, known, source, _TEST + test, aka, note)


_IMAGE = "test_image_to_column_is_what_a_convolution_multiplies"
_REGISTERS = "test_data_copy_out_of_l0c_takes_its_scales_from_the_fixpipe_buffer"

ROWS = (
    _row("LoadData", _MOVED, "LoadData 2D, LoadData 3D v2", "test_product_of_two_matrices",
         note="3D: what the last fractal holds beyond the image is not said (0 here); channel "
         "counts that are no multiple of C0 and repeats are inferred"),
    _row("LoadDataWithTranspose", _SQUARE, "LoadDataWithTranspose",
         "test_squares_of_8_bit_fractals_are_transposed"),
    _row("LoadDataWithSparse", ("int8_t",), "LoadDataWithSparse",
         "test_sparse_weights_meet_the_elements_that_their_index_names"),
    _row("SetFmatrix", (), "SetFmatrix", "test_the_3d_load_transposes_a_on_demand_and_b_always"),
    _row("SetLoadDataPaddingValue", _ANY, "SetLoadDataPaddingValue", _IMAGE),
    _row("SetLoadDataRepeat", (), "SetLoadDataRepeat",
         "test_the_3d_load_transposes_a_on_demand_and_b_always", known=Known.INFERRED,
         note="several iterations are laid out as one larger matrix"),
    _row("SetLoadDataBoundary", (), "SetLoadDataBoundary",
         "test_the_3d_load_transposes_a_on_demand_and_b_always"),
    _row("Fill", _WIDE, "Fill", "test_fill_writes_whole_fractals", aka=("InitConstValue",)),
    _row("Mmad", _MMAD, "Mmad, GEMV, K alignment, UnitFlag", "test_product_of_two_matrices",
         note="the order of additions inside a step of K is not documented: k after k here"),
    _row("MmadWithSparse", ("int8_t->int32_t",), "MmadWithSparse",
         "test_sparse_weights_meet_the_elements_that_their_index_names"),
    _row("SetHF32Mode", ("float",), "SetHF32Mode, HF32", "test_hf32_rounds_its_operands_first",
         known=Known.INFERRED, note="11 bits of mantissa are assumed"),
    _row("SetHF32TransMode", ("float",), "SetHF32TransMode",
         "test_hf32_rounds_its_operands_first", known=Known.INFERRED,
         note="the width to which it rounds is assumed; only NEAREST_EVEN is tested"),
    _row("SetMMColumnMajor", (), "SetMMColumnMajor", "test_product_of_two_matrices",
         note="order only, no values"),
    _row("SetMMRowMajor", (), "SetMMRowMajor", "test_product_of_two_matrices",
         note="order only, no values"),
    _row("Fixpipe", _FIX, "Fixpipe L0C to GM, Fixpipe L0C to L1, quantisation on the way",
         "test_fixpipe_rounds_to_half_and_clips_at_zero",
         note="8-bit results are rounded before the offset is added; the layout of an odd "
         "last block of 16 8-bit columns is inferred"),
    _row("SetFixPipeConfig", ("uint64_t",), "SetFixPipeConfig", _REGISTERS),
    _row("SetFixpipePreQuantFlag", ("uint64_t",), "SetFixpipePreQuantFlag", _REGISTERS),
    _row("SetFixpipeNz2ndFlag", (), "SetFixpipeNz2ndFlag", _REGISTERS),
)  # fmt: skip
