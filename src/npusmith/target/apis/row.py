"""What is recorded of one API."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# Calls every function of the host side of the library once.
HOST_TEST = "tests/twin_kernel/test_hostsizes.py"


class Known(str, Enum):
    """How the behaviour on the twin was established, best first."""

    REPRODUCED = "reproduced"  # the vendor's table of special values comes out of our rules
    DOCUMENTED = "documented"  # its pages say what it does, and the twin does that
    INFERRED = "inferred"  # from its formula, its name or its use in published kernels
    UNKNOWN = "unknown"  # nothing says what the chip does; the twin does something sensible


@dataclass(frozen=True, slots=True)
class Api:
    """One documented name of Ascend C as the twin has it for dav-2201."""

    name: str  # as documented today, e.g. "WholeReduceSum"; methods as "TPipe::InitBuffer"
    group: str  # section of the vendor's guide: "vector", "reduce", "cube", "activation", ...
    dtypes: tuple[str, ...]  # C++ names of element types; "a->b" for conversions; () for none
    known: Known
    source: str  # where its behaviour is said: a page's title, a table, a published kernel
    test: str  # "tests/twin_kernel/test_x.py::test_name", or a file, that pins it
    aka: tuple[str, ...] = ()  # former and other spellings that also compile
    note: str = ""  # what is uncertain, in one sentence
