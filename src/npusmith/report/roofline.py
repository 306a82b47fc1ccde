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

from npusmith.report.labels import Labels, Spot
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
    labels = Labels(_LEFT, _TOP, _LEFT + _WIDTH, _TOP + _HIGH)
    parts = [*_grid(scale), *_roof(scale, labels, slope, flat, "roof")]
    l2 = roof.needed_bytes / roof.memory_l2_us if 0 < roof.memory_l2_us < roof.memory_us else 0
    if l2:
        parts += _roof(scale, labels, l2, flat, "mark")
    eager = roof.operations / profile.eager.us if profile.eager is not None else 0
    if eager:
        parts += _level(scale, labels, eager)
    for name, x, y in points:
        parts += _point(scale, labels, name, x, y)
    # lines and points first: a label stands where it covers none of them
    for name, x, y in points:
        parts.append(labels.put(name, _around(scale.x(x), scale.y(y))))
    parts.append(labels.put(f"arithmetic: {_rate(flat)}", _along(scale.y(flat)), "dim"))
    if eager:
        parts.append(labels.put("PyTorch eager (estimate)", _along(scale.y(eager)), "dim"))
    for name, rate in (("memory", slope), ("L2", l2)):
        if rate:
            words = f"{name}: {short(rate / 1e3)} GB/s"
            parts.append(labels.put(words, _up(scale, rate, flat), "dim"))
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
        yield text(x, _TOP + _HIGH + 20, short(10.0**power), "dim", "middle")
    for power in range(int(scale.y0), int(scale.y1) + 1):
        y = scale.y(10.0**power)
        yield line("grid", _LEFT, y, _LEFT + _WIDTH, y)
        yield text(_LEFT - 6, y + 4, _rate(10.0**power), "dim", "end")
    middle = _LEFT + _WIDTH / 2
    yield text(
        middle, _TOP + _HIGH + 40, "operations for each byte of global memory", "dim", "middle"
    )


def _roof(scale: _Scale, labels: Labels, slope: float, flat: float, css: str) -> Iterator[str]:
    """From the left edge (or the lower one) up the slope to the knee, then level."""
    knee, right = flat / slope, 10.0**scale.x1
    left = _foot(scale, slope)
    if left < knee:
        ends = scale.x(left), scale.y(slope * left), scale.x(knee), scale.y(flat)
        labels.cross(*ends)
        yield line(css, *ends)
    if css == "roof":
        ends = scale.x(min(knee, right)), scale.y(flat), scale.x(right), scale.y(flat)
        labels.cross(*ends)
        yield line(css, *ends)


def _foot(scale: _Scale, slope: float) -> float:
    """Where a slope enters the picture."""
    return float(max(10.0**scale.x0, 10.0**scale.y0 / slope))


def _point(scale: _Scale, labels: Labels, name: str, x: float, y: float) -> Iterator[str]:
    css = "t-load" if name == "this kernel" else "t-store"
    at, high = scale.x(x), scale.y(y)
    labels.cover(at - 7, high - 7, at + 7, high + 7)
    labels.cross(at, high, at, _TOP + _HIGH)
    yield f'<circle class="{css}" cx="{at:.2f}" cy="{high:.2f}" r="6"/>'
    yield line("mark", at, high, at, _TOP + _HIGH)


def _level(scale: _Scale, labels: Labels, rate: float) -> Iterator[str]:
    y = scale.y(rate)
    if _TOP <= y <= _TOP + _HIGH:
        labels.cross(_LEFT, y, _LEFT + _WIDTH, y)
        yield line("mark", _LEFT, y, _LEFT + _WIDTH, y)


def _around(x: float, y: float) -> Iterator[Spot]:
    """Places of a point's name, the best ones first."""
    for away in (0, 14, 28, 42):
        for above, anchor, beside in (
            (False, "start", 10), (True, "start", 10), (True, "end", -10), (False, "end", -10),
        ):  # fmt: skip
            yield Spot(x + beside, y - 8 - away if above else y + 16 + away, anchor)


def _along(y: float) -> Iterator[Spot]:
    """Places along a level line: its right end, its left end, its middle."""
    for x, anchor in ((_WIDTH - 4, "end"), (4, "start"), (_WIDTH / 2, "middle")):
        for beside in (-6.0, 15.0):
            yield Spot(_LEFT + x, y + beside, anchor)


def _up(scale: _Scale, slope: float, flat: float) -> Iterator[Spot]:
    """Places beside a slope: below it to its right, above it to its left."""
    left, knee = scale.x(_foot(scale, slope)), scale.x(flat / slope)
    for part in (0.5, 0.35, 0.65, 0.2, 0.8):
        x = left + part * (knee - left)
        y = scale.y(_foot(scale, slope) * slope) * (1 - part) + scale.y(flat) * part
        yield Spot(x + 8, y + 14, "start")
        yield Spot(x - 8, y - 4, "end")


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
