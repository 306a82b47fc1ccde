"""Changes of layout, filters and index functions of the library."""

from __future__ import annotations

from npusmith.target.apis.row import HOST_TEST, Api, Known

_TEST = "tests/twin_kernel/test_transform.py::"
_FLOATS = ("half", "float")
_WORDS = ("int16_t", "uint16_t", "half", "int32_t", "uint32_t", "float")
_PAD = _TEST + "test_ragged_rows_are_padded_on_both_sides"
_UNPAD = _TEST + "test_unpad_drops_columns_on_the_right"
_SCENE = _TEST + "test_scenes_of_the_library_transpose"
_CHOOSE = _TEST + "test_a_mask_of_elements_chooses_tensor_or_scalar"
_DROP = _TEST + "test_dropout_keeps_by_bytes_or_bits_and_divides"
_GROW = _TEST + "test_columns_grow_to_any_width"
_VOLUME = _TEST + "test_volumes_go_to_squares_and_back"
_STEPS = _TEST + "test_arange_counts_on_from_the_first_value"
_OURS = "the members of the tiling struct and the sizes are ours"


def _row(
    name: str,
    dtypes: tuple[str, ...],
    test: str,
    known: Known = Known.DOCUMENTED,
    aka: tuple[str, ...] = (),
    note: str = "",
) -> Api:
    return Api(name, "transform", dtypes, known, f"page {name}", test, aka, note)


def _host(name: str, aka: tuple[str, ...] = ()) -> Api:
    return Api(name, "tiling", (), Known.INFERRED, f"page of {name}", HOST_TEST, aka, _OURS)


ROWS = (
    _row(
        "Broadcast",
        ("int8_t", "uint8_t", "half", "bfloat16_t", "int16_t", "int32_t", "float"),
        _GROW,
        aka=("BroadCast",),
        note="a row onto itself is a warning: published operators do it, the page forbids it; "
        "bfloat16_t, int16_t and int32_t are in a published sample for this chip, not on the page",
    ),
    _row(
        "Pad", _WORDS, _PAD, note="a padded row may be shorter than its blocks: the rest is unset"
    ),
    _row("UnPad", _WORDS, _UNPAD),
    _row("Transpose (library)", _WORDS, _SCENE, aka=("ConfusionTranspose",)),
    _row(
        "Transpose (images)",
        ("int8_t", "uint8_t", *_WORDS),
        _TEST + "test_images_change_between_nchw_and_nhwc",
    ),
    _row(
        "TransData",
        ("int16_t", "uint16_t", "half", "bfloat16_t"),
        _VOLUME,
        Known.INFERRED,
        note="what pads C and N to 16 is zero; not documented",
    ),
    _row(
        "MakeLayout", (), _VOLUME, Known.INFERRED, ("MakeShape", "MakeStride"), "strides are unused"
    ),
    _row("Fill (global memory)", _WORDS, "tests/twin_kernel/test_semantics.py"),
    _row("Select (library)", _FLOATS, _CHOOSE, aka=("SelectWithBytesMask",)),
    _row(
        "DropOut",
        _FLOATS,
        _DROP,
        Known.INFERRED,
        note="bits lowest first, as Select takes them; the page's picture shows the reverse; "
        "mode 0 decides by the widths; the division multiplies by 1 / keepProb",
    ),
    _row(
        "Arange",
        ("half", "float", "int16_t", "int32_t"),
        _STEPS,
        Known.INFERRED,
        ("ArithProgression",),
        "floats are first + i * diff; the chip adds block by block, so last bits may differ",
    ),
    _host("PadTilingFunc"),
    _host("GetPadMaxMinTmpSize"),
    _host("UnPadTilingFunc"),
    _host("GetUnPadMaxMinTmpSize"),
    _host(
        "GetTransposeTilingInfo",
        ("GetConfusionTransposeTilingInfo", "GetConfusionTransposeOnlyTilingInfo"),
    ),
    _host("GetTransposeMaxMinTmpSize", ("GetConfusionTransposeMaxMinTmpSize",)),
    _host("GetTransDataMaxMinTmpSize"),
    _host("GetBroadCastMaxMinTmpSize"),
    _host("GetSelectMaxMinTmpSize", ("GetSelectWithBytesMaskMaxMinTmpSize",)),
    _host("GetSelectMaxTmpSize", ("GetSelectWithBytesMaskMaxTmpSize",)),
    _host("GetSelectMinTmpSize", ("GetSelectWithBytesMaskMinTmpSize",)),
    _host("GetDropOutMaxMinTmpSize"),
    _host("GetDropOutMaxTmpSize"),
    _host("GetDropOutMinTmpSize"),
    _host("GetArangeMaxMinTmpSize", ("GetArithProgressionMaxMinTmpSize",)),
)
