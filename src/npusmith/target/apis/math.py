"""Math functions of the library, with and without scratch and count."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_ROWS = "tests/twin_kernel/test_conformance.py"
_FORMS = "tests/twin_kernel/test_quant.py::test_library_forms_of_math"
_XOR = "tests/twin_kernel/test_quant.py::test_xor_of_a_whole_tensor"
_FLOATS = ("half", "float")
_GAMMA = "tests/twin_kernel/test_breadth.py::test_fractions_and_the_gamma_functions"
_EXACT = ("Floor", "Ceil", "Round", "Trunc", "Sign")
_ROUNDED = (
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh"),
    *("Atanh", "Log", "Log2", "Log10", "Erf", "Erfc"),
)
_BITS = "rounded once from double; the chip's polynomials differ in the last bits"


def _row(
    name: str,
    known: Known,
    note: str = "",
    dtypes: tuple[str, ...] = _FLOATS,
    test: str = _FORMS,
) -> Api:
    return Api(name, "math", dtypes, known, f"page {name.split()[0]}", test, note=note)


ROWS = (
    *(_row(name, Known.DOCUMENTED, test=_ROWS) for name in _EXACT),
    *(_row(name, Known.INFERRED, _BITS, test=_ROWS) for name in _ROUNDED),
    _row("Frac", Known.DOCUMENTED, test=_GAMMA),
    _row("Lgamma", Known.INFERRED, _BITS, test=_GAMMA),
    _row("Digamma", Known.INFERRED, _BITS, test=_GAMMA),
    _row("Power", Known.INFERRED, _BITS, (*_FLOATS, "int32_t")),
    _row("Fmod", Known.DOCUMENTED),
    _row("Xor", Known.DOCUMENTED, "", ("int16_t", "uint16_t"), _XOR),
    _row("ClampMax", Known.DOCUMENTED),
    _row("ClampMin", Known.DOCUMENTED),
    _row("Exp (series)", Known.INFERRED, "the truncated series is exact and rounded once"),
    _row("Axpy (library)", Known.DOCUMENTED, "", (*_FLOATS, "half->float")),
)
