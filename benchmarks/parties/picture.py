"""A line chart as SVG: of figure 2 of Pathak, Rane and Raj, drawn again."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 50, 240, 20, 40


@frozen
class Line:
    """A line through points (x, y), with its name beside the chart."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    dashes: str = ""


def chart(lines: Sequence[Line], across: str, up: str, ticks: tuple[Sequence[float], Sequence[float]]) -> str:
    """The lines between the first and the last tick of each axis."""
    xs, ys = ticks

    def x_of(value: float) -> float:
        return LEFT + (value - xs[0]) / (xs[-1] - xs[0]) * (WIDTH - LEFT - RIGHT)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (value - ys[0]) / (ys[-1] - ys[0]) * (HEIGHT - TOP - BOTTOM)

    low, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"',
        '     font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<path d="M{LEFT} {TOP}V{low}H{end}" fill="none" stroke="#555"/>',
        *(f'<text x="{x_of(x):.1f}" y="{low + 16}" text-anchor="middle">{x:g}</text>' for x in xs),
        *(f'<text x="{LEFT - 6}" y="{y_of(y) + 4:.1f}" text-anchor="end">{y:g}</text>' for y in ys),
        f'<text x="{(LEFT + end) / 2:g}" y="{HEIGHT - 6}" text-anchor="middle">{across}</text>',
        f'<text x="{LEFT - 44}" y="{TOP - 6}">{up}</text>',
    ]
    for number, line in enumerate(lines):
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line.points)
        style = f'fill="none" stroke="{line.colour}" stroke-width="2" stroke-dasharray="{line.dashes or "none"}"'
        at = TOP + 10 + 20 * number
        parts += [
            f'<polyline points="{path}" {style}/>',
            f'<path d="M{end + 14} {at - 4}h24" {style}/>',
            f'<text x="{end + 46}" y="{at}">{line.name}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
