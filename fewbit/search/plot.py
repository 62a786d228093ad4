"""Pictures of a search as SVG: the front, and the sensitivity of layers. No library is needed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from fewbit.search.costs import amount

if TYPE_CHECKING:
    from fewbit.search.result import Point, Result

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 80, 50, 34, 20
TICKS = 5
"""About as many lines cross an axis."""
FRONT, OTHER, OVER, BEST = "#1f6feb", "#8c959f", "#d0d7de", "#cf222e"
CELL, ROW = 58, 26


def plot_front(result: Result) -> str:
    """Return all points by their cost and objective, with the front as steps.

    A step is what the best recipe of at most so much cost is worth. Points say their recipe where
    the mouse is over them.
    """
    cost = result.ranges[0]
    points = [(*_place(each, result), each) for each in [*result.points, result.widest]]
    reference = result.reference.get(result.objective)
    xs = [x for x, _, _ in points] + ([cost.limit] if cost.limit is not None else [])
    ys = [y for _, y, _ in points] + ([reference] if reference is not None else [])
    axes = _Axes(_span(xs), _span(ys))
    parts = [*axes.frame(result.title, cost.name, result.objective, cost.unit, result.kind.unit)]
    if reference is not None:
        parts.append(axes.horizontal(reference, "float"))
    if cost.limit is not None:
        parts.append(axes.vertical(cost.limit, "budget"))
    front, best, wide = result.front, result.best, result.widest
    for x, y, point in points[:-1]:
        if point not in front:
            parts.append(axes.dot(x, y, OTHER if point.fits else OVER, note=str(point.recipe)))
    parts.append(axes.steps([_place(each, result) for each in front], FRONT))
    parts += [axes.dot(*_place(p, result), FRONT, note=str(p.recipe)) for p in front]
    parts.append(axes.ring(*_place(wide, result), FRONT, "8 bits"))
    if best is not None:
        parts.append(axes.dot(*_place(best, result), BEST, 6, str(best.recipe)))
        parts.append(axes.label(*_place(best, result), f"best, {result.show(best.metrics)}"))
    return _svg(WIDTH, HEIGHT, parts)


def _place(point: Point, result: Result) -> tuple[float, float]:
    return point.costs[result.ranges[0].name], point.metrics[result.objective]


def plot_sensitivity(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float | None]]]
) -> str:
    """Return a table of cells that are the darker the more a layer loses at a width."""
    left = 20 + 7 * max((len(name) for name, _ in rows), default=0)
    most = max((x for _, row in rows for x in row if x is not None), default=0.0) or 1.0
    parts = [_text(10, 20, title, "start")]
    for column, name in enumerate(columns):
        parts.append(_text(left + CELL * column + CELL / 2, 44, name))
    for number, (name, row) in enumerate(rows):
        top = 52 + ROW * number
        parts.append(_text(left - 8, top + 17, name, "end"))
        for column, value in enumerate(row):
            if value is None:
                continue
            share = max(min(value / most, 1.0), 0.0) ** 0.5
            x = left + CELL * column
            parts.append(
                f'<rect x="{x}" y="{top}" width="{CELL - 2}" height="{ROW - 2}" '
                f'fill="{BEST}" fill-opacity="{share:.3f}"/>'
            )
            parts.append(_text(x + CELL / 2 - 1, top + 16, f"{value:.3g}"))
    return _svg(left + CELL * len(columns) + 20, 70 + ROW * len(rows), parts)


def round_ticks(low: float, high: float) -> list[float]:
    """Return a few multiples of 1, 2 or 5 times a power of ten between two numbers."""
    rough = (high - low) / TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    margin = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


class _Axes:
    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = x, y

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - TOP),
        )

    def frame(self, title: str, x: str, y: str, unit: str, y_unit: str) -> list[str]:
        parts = [_text(WIDTH / 2, 18, title), _text(WIDTH / 2, HEIGHT - 10, x)]
        parts.append(
            f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" '
            f'text-anchor="middle">{escape(y)}</text>'
        )
        for tick in round_ticks(*self.x):
            across, _ = self.at(tick, self.y[0])
            parts.append(_line(across, TOP, across, HEIGHT - BOTTOM, "#eaeef2"))
            parts.append(_text(across, HEIGHT - BOTTOM + 18, amount(tick, unit)))
        for tick in round_ticks(*self.y):
            _, up = self.at(self.x[0], tick)
            parts.append(_line(LEFT, up, WIDTH - RIGHT, up, "#eaeef2"))
            shown = f"{100 * tick:g}%" if y_unit == "%" else f"{tick:.3g}"
            parts.append(_text(LEFT - 8, up + 4, shown, "end"))
        return parts

    def dot(self, x: float, y: float, colour: str, radius: float = 3.5, note: str = "") -> str:
        across, up = self.at(x, y)
        circle = f'<circle cx="{across:.1f}" cy="{up:.1f}" r="{radius}" fill="{colour}"'
        return f"{circle}><title>{escape(note)}</title></circle>" if note else f"{circle}/>"

    def ring(self, x: float, y: float, colour: str, label: str) -> str:
        across, up = self.at(x, y)
        ring = f'<circle cx="{across:.1f}" cy="{up:.1f}" r="4" fill="white" stroke="{colour}"/>'
        return ring + _text(across, up + 18, label)

    def label(self, x: float, y: float, text: str) -> str:
        """Return a text beside a point, on the side where there is room."""
        across, up = self.at(x, y)
        is_right = across > (LEFT + WIDTH) / 2
        return _text(
            across + (-10 if is_right else 10), up + 16, text, "end" if is_right else "start"
        )

    def steps(self, points: Sequence[tuple[float, float]], colour: str) -> str:
        spots: list[tuple[float, float]] = []
        for x, y in points:
            spots += [(x, spots[-1][1]), (x, y)] if spots else [(x, y)]
        if spots:
            spots.append((self.x[1], spots[-1][1]))
        text = " ".join(f"{a:.1f},{b:.1f}" for a, b in (self.at(*each) for each in spots))
        return f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.5"/>'

    def horizontal(self, y: float, label: str) -> str:
        _, up = self.at(self.x[0], y)
        drawn = _line(LEFT, up, WIDTH - RIGHT, up, OTHER, "4 4")
        return drawn + _text(WIDTH - RIGHT, up - 5, label, "end")

    def vertical(self, x: float, label: str) -> str:
        across, _ = self.at(x, self.y[0])
        drawn = _line(across, TOP, across, HEIGHT - BOTTOM, OTHER, "4 4")
        return drawn + _text(across + 4, TOP + 12, label, "start")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="sans-serif" font-size="11" '
        f'fill="#1f2328">\n<rect width="100%" height="100%" fill="white"/>\n{inner}\n</svg>\n'
    )
