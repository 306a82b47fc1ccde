"""One row of a vector instruction is what C++ headers, the API table and the language say of it."""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.target.apis import find_api
from npusmith.target.elementwise import ROWS, VECTORS, elementwise_header
from npusmith.target.intrinsics import INTRINSICS

LINES = elementwise_header().splitlines()


def test_a_row_gives_its_types_to_cpp_to_the_api_table_and_to_the_language() -> None:
    assert "#define TWIN_TYPES_Relu half, float, std::int32_t" in LINES
    assert '#define TWIN_LEGAL_Relu "half, float or int32_t"' in LINES
    assert find_api("Relu").dtypes == ("half", "float", "int32_t")
    assert set(INTRINSICS["relu"].dtypes) == {DType.FLOAT16, DType.FLOAT32, DType.INT32}


def test_an_update_of_the_destination_is_said_once() -> None:
    listed = next(line for line in LINES if "TWIN_READS_DST_ROWS" in line)
    for row in ROWS:
        own = not row.operation
        assert (f"ROW({row.name}, " in listed) == (row.reads_dst and own)
    assert VECTORS["Axpy"].reads_dst and INTRINSICS["axpy"].reads_dst
    assert not VECTORS["Adds"].reads_dst and not INTRINSICS["adds"].reads_dst


def test_a_c_name_may_take_other_operands_than_its_row() -> None:
    binary = next(line for line in LINES if "TWIN_RAW_BINARY_ROWS" in line)
    assert "ROW(vmla, MulAddDst, MulAddDst)" in binary
    assert "ROW(vadd, Add, Add)" in binary
    assert "vshr" not in "".join(line for line in LINES if "_ROWS" in line)
