"""The Matmul object, its configuration, and the host's tiling of it."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_TEST = "tests/twin_kernel/test_matmul.py::"
_PRODUCT = _TEST + "test_half_products_are_those_of_float64"
_BLOCKS = _TEST + "test_blocks_come_along_m_first_and_follow_each_other_when_sequential"
_PART = _TEST + "test_a_part_of_larger_matrices"
_BIAS = _TEST + "test_bias_is_added_to_each_row"
_BATCH = _TEST + "test_batches_of_matrices"
_QUANT = _TEST + "test_a_scale_brings_int8_products_to_half_without_its_low_bits"
_VECTOR = _TEST + "test_each_column_may_have_its_own_scale"
_ROUNDS = _TEST + "test_batches_in_rounds_are_fetched_one_by_one"
_FORMS = _TEST + "test_documented_forms_compile"
_FIXED = _TEST + "test_constant_tiling_needs_none_at_run_time"
_PAIRS = _TEST + "test_a_faulty_use_is_caught_on_its_line"
_HOST = "tests/twin_host/test_matmul.py::"
_LEGAL = _HOST + "test_every_tiling_is_legal_and_covers_the_product"

_CALLBACK = "tests/twin_kernel/test_cube.py::test_a_callback_brings_the_blocks_of_b"
_SPARSE = "tests/twin_kernel/test_cube.py::test_a_sparse_b_is_whole_where_its_index_says"
_CALLED = (
    "copies of A and B by a cube core's own object, each block once; what a block is with MDL is "
    "taken from published kernels; copies out of L0C and objects of vector cores do not compile"
)
_INPUTS = ("half", "bfloat16_t", "float", "int8_t", "int4b_t")
_ORDER = "k in ascending order with float sums: the cube core's own order is not documented"
_LAZY = "computed when it is fetched, not while the vector core goes on"


def _row(
    name: str,
    test: str,
    known: Known = Known.DOCUMENTED,
    note: str = "",
    aka: tuple[str, ...] = (),
    dtypes: tuple[str, ...] = (),
) -> Api:
    return Api(name, "matmul", dtypes, known, f"page {name} of Matmul", test, aka, note)


def _host(name: str, test: str = _LEGAL) -> Api:
    note = "the split is ours: legal by the documented rules, not the vendor's choice"
    return Api(name, "tiling", (), Known.INFERRED, f"page {name}", test, note=note)


ROWS = (
    _row("Matmul", _PRODUCT, Known.INFERRED, _ORDER, dtypes=_INPUTS),
    _row("MatmulImpl", _PAIRS, Known.INFERRED, _ORDER, dtypes=_INPUTS),
    _row("MatmulType", _FORMS),
    _row("REGIST_MATMUL_OBJ", _FORMS, aka=("REGISTER_MATMUL_OBJ",)),
    _row("Matmul::Init", _PAIRS),
    _row("SetOrgShape", _PART),
    _row("SetSingleShape", _PART),
    _row("SetTail", _TEST + "test_two_objects_on_several_cores_with_tails"),
    _row("SetTensorA", _PRODUCT),
    _row("SetTensorB", _PRODUCT),
    _row("SetTensorAWithCopy", _FORMS, Known.UNKNOWN, "taken as SetTensorA; the copy is not kept"),
    _row("SetTensorBWithCopy", _FORMS, Known.UNKNOWN, "taken as SetTensorB; the copy is not kept"),
    _row("SetBias", _BIAS),
    _row("DisableBias", _PAIRS, aka=("ClearBias",)),
    _row("Iterate", _PRODUCT, Known.INFERRED, f"{_ORDER}; asynchronous: {_LAZY}"),
    _row("IterateAll", _PRODUCT, Known.INFERRED, _ORDER),
    _row("WaitIterateAll", _PAIRS),
    _row("GetTensorC", _BLOCKS, Known.INFERRED, "the row length of a last, smaller block"),
    _row("AsyncGetTensorC", _PRODUCT, Known.INFERRED, _LAZY, ("WaitGetTensorC",)),
    _row("End", _PRODUCT),
    _row("SetWorkspace", _PAIRS),
    _row("SetLocalWorkspace", _FORMS),
    _row(
        "SetQuantScalar", _QUANT, Known.INFERRED, "rounding to int8, and where the offset is added"
    ),
    _row(
        "SetQuantVector", _VECTOR, Known.INFERRED, "rounding to int8, and where the offset is added"
    ),
    _row(
        "SetHF32",
        _TEST + "test_hf32_drops_twelve_bits_of_each_float",
        Known.UNKNOWN,
        "11 bits of mantissa, ties to even, are a guess",
    ),
    _row("SparseMatmulType", _SPARSE),
    _row("SetSparseIndex", _SPARSE),
    _row("MatmulCallBackFunc", _CALLBACK, Known.INFERRED, _CALLED),
    _row("SetUserDefInfo", _CALLBACK),
    _row("SetSelfDefineData", _CALLBACK),
    _row("SetSubBlockIdx", _FORMS),
    _row("IterateBatch", _BATCH, Known.INFERRED, "how the smaller batch is repeated"),
    _row("WaitIterateBatch", _BATCH),
    _row("IterateNBatch", _ROUNDS, Known.INFERRED, f"asynchronous: {_LAZY}"),
    _row("GetBatchTensorC", _ROUNDS, Known.INFERRED, _LAZY),
    _row("GetMMConfig", _FIXED),
    _row("GetNormalConfig", _FORMS),
    _row("GetMDLConfig", _FIXED),
    _row("GetSpecialMDLConfig", _FORMS),
    _row("GetIBShareNormConfig", _FORMS),
    _row("GetBasicConfig", _FORMS),
    _row("GetSpecialBasicConfig", _FORMS),
    _row("GetMatmulApiTiling", _FIXED, Known.INFERRED, "depth and steps in L1 are our choice"),
    _host("MatmulApiTiling"),
    _host("MultiCoreMatmulTiling"),
    _host("BatchMatmulTiling", _HOST + "test_layouts_and_batches_reach_the_kernel"),
)
