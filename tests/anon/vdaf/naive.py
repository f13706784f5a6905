"""The predicates on plain numbers, and the proof over schoolbook polynomials. Shares no code with `anon.vdaf`."""

from __future__ import annotations

P = 2**128 - 7 * 2**66 + 1


def one_hot(cells: list[int], lengths: tuple[int, ...]) -> bool:
    """Each block is zeros and a single one."""
    cells = list(cells)
    blocks = [[cells.pop(0) for _ in range(length)] for length in lengths]
    return not cells and all(sorted(block) == [0] * (len(block) - 1) + [1] for block in blocks)


def within_ball(elements: list[int], size: int, bits: int, radius: int) -> bool:
    """All are bits, and the entries' squares sum up to what is claimed, which is at most the radius squared."""
    if not set(elements) <= {0, 1}:
        return False
    words = ["".join(map(str, elements[i * bits : (i + 1) * bits])) for i in range(size)]
    entries = [int(word[::-1], 2) - (2**bits if word[-1] == "1" else 0) for word in words]
    *rest, last = elements[size * bits :]
    low = sum(bit * 2**i for i, bit in enumerate(rest))
    claimed = low + last * (radius * radius - (2 ** len(rest) - 1))
    assert claimed <= radius * radius
    return sum(entry**2 for entry in entries) == claimed


def root(n: int) -> int:
    return pow(7, (P - 1) // n, P)


def times(one: list[int], other: list[int]) -> list[int]:
    product = [0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            product[i + j] = (product[i + j] + a * b) % P
    return product


def through(points: list[int], values: list[int]) -> list[int]:
    """Lagrange's polynomial, by its coefficients."""
    total = [0] * len(points)
    for i, value in enumerate(values):
        basis, scale = [1], 1
        for j, point in enumerate(points):
            if j != i:
                basis, scale = times(basis, [-point % P, 1]), scale * (points[i] - point) % P
        total = [(a + value * b * pow(scale, P - 2, P)) % P for a, b in zip(total, basis, strict=True)]
    return total


def at(polynomial: list[int], point: int) -> int:
    return sum(c * pow(point, i, P) for i, c in enumerate(polynomial)) % P


def bit_calls(elements: list[int], joint: list[int], chunk: int, one: int) -> list[list[int]]:
    calls = []
    for i, r in enumerate(joint):
        call = []
        for j in range(chunk):
            x = elements[i * chunk + j] if i * chunk + j < len(elements) else 0
            call += [pow(r, j + 1, P) * x % P, (x - one) % P]
        calls.append(call)
    return calls


def square_calls(entries: list[int], chunk: int) -> list[list[int]]:
    calls = []
    for i in range(0, len(entries), chunk):
        part = entries[i : i + chunk] + [0] * chunk
        calls.append([part[j // 2] for j in range(2 * chunk)])
    return calls


def wires_of(seeds: list[int], calls: list[list[int]], points: int) -> list[list[int]]:
    nodes = [pow(root(points), i, P) for i in range(points)]
    columns = [[seed, *(call[j] for call in calls)] for j, seed in enumerate(seeds)]
    return [through(nodes, column + [0] * (points - len(column))) for column in columns]


def size_of(calls: int) -> int:
    points = 1
    while points < calls + 1:
        points *= 2
    return points


def prove(seeds: list[int], calls: list[list[int]]) -> list[int]:
    points = size_of(len(calls))
    wires = wires_of(seeds, calls, points)
    products = [times(wires[j], wires[j + 1]) for j in range(0, len(wires), 2)]
    gadget = [sum(column) % P for column in zip(*products, strict=True)]
    return seeds + [at(gadget, pow(root(2 * points), i, P)) for i in range(2 * points - 1)]


def gadget_of(proof: list[int], arity: int, points: int) -> list[int]:
    return through([pow(root(2 * points), i, P) for i in range(2 * points - 1)], proof[arity:])


def query(proof: list[int], calls: list[list[int]], point: int) -> tuple[list[int], list[int]]:
    """The gadget's results, and the wires and the gadget's polynomial at the point."""
    points, arity = size_of(len(calls)), len(calls[0])
    gadget = gadget_of(proof, arity, points)
    results = [at(gadget, pow(root(points), i + 1, P)) for i in range(len(calls))]
    wires = wires_of(proof[:arity], calls, points)
    return results, [*(at(wire, point) for wire in wires), at(gadget, point)]
