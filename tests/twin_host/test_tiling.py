"""Tiling structs out of text: layouts, kernel-side definitions, differences, constants."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.errors import TwinError
from npusmith.twin.tiling import differences, emit_struct, evaluate, find_structs

FILE = Path("tiling.h")


def plain(body: str, name: str = "T", before: str = "") -> dict[str, object]:
    return find_structs({FILE: f"{before}struct {name} {{ {body} }};"})  # type: ignore[return-value]


def test_macro_fields_lie_at_multiples_of_their_size_and_the_end_is_padded_to_eight() -> None:
    text = """
    BEGIN_TILING_DATA_DEF(Inner)
      TILING_DATA_FIELD_DEF(uint8_t, a);
    END_TILING_DATA_DEF;
    BEGIN_TILING_DATA_DEF(Outer)
      TILING_DATA_FIELD_DEF(uint8_t, a);
      TILING_DATA_FIELD_DEF(int64_t, b);
      TILING_DATA_FIELD_DEF_ARR(uint16_t, 2 + N, c);
      TILING_DATA_FIELD_DEF_STRUCT(Inner, d);
      TILING_DATA_FIELD_DEF(uint32_t, e);
    END_TILING_DATA_DEF;
    constexpr uint32_t N = 1;
    """
    structs = find_structs({FILE: text})
    outer = structs["Outer"]
    assert [field.offset for field in outer.fields] == [0, 8, 16, 24, 32]
    assert (outer.bytes, structs["Inner"].bytes) == (40, 8)
    assert "uint16_t c[3];" in emit_struct(outer)


def test_a_length_is_what_its_own_file_says_where_two_define_the_name() -> None:
    text = "constexpr uint32_t N = {n};\nstruct {name} {{ int32_t a[N]; }};\n"
    files = {Path(f"{n}.h"): text.format(n=n, name=f"Of{n}") for n in (50, 64)}
    structs = find_structs(files)
    assert (structs["Of50"].bytes, structs["Of64"].bytes) == (200, 256)


def test_an_array_length_that_nobody_defines_is_an_error() -> None:
    field = "TILING_DATA_FIELD_DEF_ARR(int32_t, LEN, a);"
    text = f"BEGIN_TILING_DATA_DEF(T)\n{field}\nEND_TILING_DATA_DEF;"
    with pytest.raises(TwinError) as caught:
        find_structs({FILE: text})
    assert caught.value.code == "tiling-array"
    assert caught.value.place.line == 2


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("uint32_t a; uint64_t b;", 16),
        ("uint32_t a, b, c;", 12),
        ("std::uint8_t a[3][5]; float b = 0.5f;", 20),
        ("bool a; const int32_t b;", 8),
        ("uint32_t a; void f() {}", 0),
        ("Unknown a;", 0),
    ],
)
def test_plain_structs_have_their_natural_layout_or_none(body: str, size: int) -> None:
    assert plain(body)["T"].bytes == size  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("host", "kernel", "differ"),
    [
        ("uint32_t a; uint32_t b;", "uint32_t a; uint32_t b;", False),
        ("uint32_t a;", "int32_t a;", False),
        ("uint32_t a;", "uint32_t renamed;", False),
        ("uint32_t a; uint32_t b;", "uint32_t b; uint32_t a;", True),
        ("uint32_t a; uint64_t b;", "uint32_t a; uint32_t b;", True),
        ("uint32_t a;", "float a;", True),
        ("uint32_t a[4];", "uint32_t a[3];", True),
        ("uint32_t a;", "uint32_t a; uint32_t b;", True),
        ("Unknown a;", "uint32_t a;", False),
    ],
)
def test_differences_are_found_field_by_field(host: str, kernel: str, differ: bool) -> None:
    ours = find_structs({FILE: f"struct H {{ {host} }};"})["H"]
    theirs = find_structs({FILE: f"struct K {{ {kernel} }};"})["K"]
    assert bool(differences(ours, theirs)) is differ


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("48", 48),
        ("0x10u", 16),
        ("N * (2 + M) / 3", 8),
        ("1 << 4", 16),
        ("static_cast<uint32_t>(7)", 7),
        ("1'024", 1024),
        ("UNKNOWN + 1", None),
        ("sizeof(int)", None),
        ("1 << 100000", None),
        ("LOOP", None),
    ],
)
def test_constant_expressions(text: str, value: int | None) -> None:
    constants = {"N": "4", "M": "N", "LOOP": "LOOP + 1"}
    assert evaluate(text, constants) == value


def test_a_struct_stands_behind_its_members_wherever_these_are_read() -> None:
    outer = """BEGIN_TILING_DATA_DEF(Outer)
      TILING_DATA_FIELD_DEF_STRUCT(Inner, first);
      TILING_DATA_FIELD_DEF(uint32_t, last);
    END_TILING_DATA_DEF;"""
    inner = """BEGIN_TILING_DATA_DEF(Inner)
      TILING_DATA_FIELD_DEF(int64_t, a);
      TILING_DATA_FIELD_DEF(int64_t, b);
    END_TILING_DATA_DEF;"""
    found = find_structs({Path("a.h"): outer, Path("b.h"): inner})
    assert list(found) == ["Inner", "Outer"]
    assert (found["Outer"].bytes, found["Outer"].fields[1].offset) == (24, 16)


def test_structs_that_hold_each_other_end() -> None:
    text = """BEGIN_TILING_DATA_DEF(A)
      TILING_DATA_FIELD_DEF_STRUCT(B, b);
    END_TILING_DATA_DEF;
    BEGIN_TILING_DATA_DEF(B)
      TILING_DATA_FIELD_DEF_STRUCT(A, a);
    END_TILING_DATA_DEF;"""
    assert {name: one.bytes for name, one in find_structs({FILE: text}).items()} == {"A": 0, "B": 0}
