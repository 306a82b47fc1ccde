"""roofline.svg: arithmetic for each byte of global memory against arithmetic for each second.

The roof is that of the task's graph: its slope is the memory's rate, its flat part the rate at
which the chip's units can do just this arithmetic. The kernel stands where the bytes that it moves
and its estimated time put it. A graph without arithmetic gets bars of times instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npusmith.report.svg import line, picture, rect, short, text

if TYPE_CHECKING:
    from npusmith.timing.profile import Profile

_LEFT, _TOP, _WIDTH, _HIGH = 70.0, 34.0, 640.0, 300.0


@dataclass(frozen=True, slots=True)
class _Scale:
    """Powers of ten to places in the picture."""

    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        return _LEFT + _WIDTH * (math.log10(value) - self.x0) / (self.x1 - self.x0)

    def y(self, value: float) -> float:
        return _TOP + _HIGH * (self.y1 - math.log10(value)) / (self.y1 - self.y0)


def roofline(profile: Profile) -> str:
    """The picture; bars of times where there is no arithmetic or no traffic to set in relation."""
    roof = profile.roof
    if roof is None or not (
        roof.operations > 0 and roof.needed_bytes > 0 and roof.memory_us > 0 and roof.compute_us > 0
    ):
        return _bars(profile)
    flat = roof.operations / roof.compute_us  # operations a us
    slope = roof.needed_bytes / roof.memory_us  # bytes a us
    points = _points(profile)
    scale = _scale([flat, *(y for _, _, y in points)], [flat / slope, *(x for _, x, _ in points)])
    parts = [*_grid(scale), *_roof(scale, slope, flat, "memory", "roof")]
    if 0 < roof.memory_l2_us < roof.memory_us:
        parts += _roof(scale, roof.needed_bytes / roof.memory_l2_us, flat, "L2", "mark")
    parts.append(_flat(scale, flat))
    for name, x, y in points:
        parts += _point(scale, name, x, y)
    if profile.eager is not None:
        parts += _level(scale, roof.operations / profile.eager.us, "PyTorch eager (estimate)")
    words = f"Roofline of {profile.chip}: {roof.words}"
    return picture(
        _LEFT + _WIDTH + 40, _TOP + _HIGH + 48, words, [text(8, 18, words, "head"), *parts]
    )


def _points(profile: Profile) -> list[tuple[str, float, float]]:
    """Name, operations a byte, operations a us."""
    roof = profile.roof
    assert roof is not None
    work, moved = roof.operations, profile.moved_bytes
    points = [("least possible", work / roof.needed_bytes, work / roof.bound_us)]
    if moved > 0 and profile.kernel_us > 0:
        points.append(("this kernel", work / moved, work / profile.kernel_us))
    return points


def _scale(rates: list[float], densities: list[float]) -> _Scale:
    """Whole powers of ten around everything that is drawn."""
    return _Scale(
        math.floor(math.log10(min(densities)) - 0.3), math.ceil(math.log10(max(densities)) + 0.3),
        math.floor(math.log10(min(rates)) - 0.3), math.ceil(math.log10(max(rates)) + 0.2),
    )  # fmt: skip


def _grid(scale: _Scale) -> Iterator[str]:
    for power in range(int(scale.x0), int(scale.x1) + 1):
        x = scale.x(10.0**power)
        yield line("grid", x, _TOP, x, _TOP + _HIGH)
        yield text(x, _TOP + _HIGH + 16, short(10.0**power), "dim", "middle")
    for power in range(int(scale.y0), int(scale.y1) + 1):
        y = scale.y(10.0**power)
        yield line("grid", _LEFT, y, _LEFT + _WIDTH, y)
        yield text(_LEFT - 6, y + 4, _rate(10.0**power), "dim", "end")
    middle = _LEFT + _WIDTH / 2
    yield text(
        middle, _TOP + _HIGH + 36, "operations for each byte of global memory", "dim", "middle"
    )


def _roof(scale: _Scale, slope: float, flat: float, name: str, css: str) -> Iterator[str]:
    """From the left edge (or the lower one) up the slope to the knee, then level."""
    knee, right = flat / slope, 10.0**scale.x1
    left = max(10.0**scale.x0, 10.0**scale.y0 / slope)
    if left < knee:
        yield line(css, scale.x(left), scale.y(slope * left), scale.x(knee), scale.y(flat))
        words, middle = f"{name}: {short(slope / 1e3)} GB/s", math.sqrt(left * knee)
        beside = (8, 14, "start") if css == "roof" else (-8, -4, "end")  # below and above its line
        x, y = scale.x(middle) + beside[0], scale.y(slope * middle) + beside[1]
        yield text(x, y, words, "dim", beside[2])
    if css == "roof":
        yield line(css, scale.x(min(knee, right)), scale.y(flat), scale.x(right), scale.y(flat))


def _flat(scale: _Scale, flat: float) -> str:
    words = f"arithmetic: {_rate(flat)}"
    return text(_LEFT + _WIDTH - 4, scale.y(flat) - 6, words, "dim", "end")


def _point(scale: _Scale, name: str, x: float, y: float) -> Iterator[str]:
    css = "t-load" if name == "this kernel" else "t-store"
    at, high = scale.x(x), scale.y(y)
    yield f'<circle class="{css}" cx="{at:.2f}" cy="{high:.2f}" r="6"/>'
    yield line("mark", at, high, at, _TOP + _HIGH)
    yield text(at + 10, high + 14, name)


def _level(scale: _Scale, rate: float, name: str) -> Iterator[str]:
    y = scale.y(rate)
    if _TOP <= y <= _TOP + _HIGH:
        yield line("mark", _LEFT, y, _LEFT + _WIDTH, y)
        yield text(_LEFT + _WIDTH - 4, y - 5, name, "dim", "end")


def _bars(profile: Profile) -> str:
    """Times side by side."""
    rows = [
        ("this kernel", profile.kernel_us, "t-load"),
        ("with launch", profile.task_us, "t-move"),
    ]
    if profile.roof is not None:
        rows.insert(0, ("memory roof", profile.roof.memory_us, "t-store"))
        rows.insert(1, ("compute roof", profile.roof.compute_us, "t-vector"))
    if profile.eager is not None:
        rows.append(("PyTorch eager", profile.eager.us, "t-scalar"))
    top = max(us for _, us, _ in rows) or 1.0
    parts = [text(8, 18, f"Estimated times on {profile.chip}", "head")]
    for at, (name, us, css) in enumerate(rows):
        y = 34.0 + 28 * at
        parts.append(text(108, y + 14, name, "", "end"))
        parts.append(rect(css, 116, y, max(520 * us / top, 0.5), 20))
        parts.append(text(122 + 520 * us / top, y + 14, f"{short(us)} us", "dim"))
    label = (
        f"Estimated times on {profile.chip}; there is no roofline without arithmetic and traffic"
    )
    return picture(750, 34 + 28 * len(rows) + 8, label, parts)


def _rate(value: float) -> str:
    """Operations a microsecond as operations a second."""
    for unit, size in (("T", 1e6), ("G", 1e3), ("M", 1.0)):
        if value >= size:
            return f"{short(value / size)} {unit}op/s"
    return f"{short(value * 1e3)} kop/s"
