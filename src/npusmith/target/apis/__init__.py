"""Every Ascend C API that the twin has, and how sure we are of it: one row per documented name.

`ALL` joins the rows of the families. Readers: the capability matrix in docs/apis.md, the note in a
report that names the uncertain APIs a kernel used, the header that explains what dav-2201 lacks.
"""

from __future__ import annotations

import importlib
import pkgutil

from npusmith.target.apis.row import Api, Known

__all__ = ["ALL", "Api", "Known", "find_api"]


def _families() -> dict[str, tuple[Api, ...]]:
    """The ROWS of every module of this folder, in the order of their names."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name != "row")
    return {name: importlib.import_module(f"{__name__}.{name}").ROWS for name in names}


FAMILIES = _families()
ALL: tuple[Api, ...] = tuple(row for rows in FAMILIES.values() for row in rows)


def find_api(name: str) -> Api | None:
    """The row of a documented name, current or former."""
    return _BY_NAME.get(name)


_BY_NAME: dict[str, Api] = {name: row for row in ALL for name in (row.name, *row.aka)}
