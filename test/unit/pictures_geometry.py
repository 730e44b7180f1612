"""Where the parts of a picture are."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

SVG = "{http://www.w3.org/2000/svg}"


def extents(svg):
    """The left, top, right and bottom edge of each rectangle, text and line but the background, in order.

    Characters are at least a third as wide as they are high.
    """
    for element in ET.fromstring(svg).iter():
        kind = element.tag.removeprefix(SVG)
        if kind == "rect" and element.get("x"):
            x, y, width, height = (float(element.get(name)) for name in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height
        elif kind == "text" and not element.get("transform"):
            x, y, size = (float(element.get(name, 10)) for name in ("x", "y", "font-size"))
            width = 0.35 * size * len(element.text or "")
            left = x - {"middle": width / 2, "end": width}.get(element.get("text-anchor"), 0)
            yield left, y - 0.7 * size, left + width, y
        elif kind == "path" and element.get("d") != "M0 0":
            for command, numbers in re.findall(r"([MHVL])([-\d. ]+)", element.get("d")):
                at = [*map(float, numbers.split())]
                x, y = at if len(at) == 2 else (at[0], y) if command == "H" else (x, at[0])
                yield x, y, x, y


def check_extents(svg, left, bottom, gap=(0, 0)):
    """All is within the picture, and its margins are these. The gap above each line across it is in a range."""
    _, _, width, height = map(float, ET.fromstring(svg).get("viewBox").split())
    found = [*extents(svg)]
    edges = [*zip(*found)]
    assert min(edges[0]) == left and min(edges[1]) >= 0 and max(edges[2]) <= width
    assert round(height - max(edges[3]), 1) == bottom
    lines = [n for n, (a, b) in enumerate(pairwise(found)) if b[0] - a[0] == width - 2 * left and a[1] == b[1]]
    for start, end in pairwise(lines):
        assert gap[0] <= found[end][1] - max(e[3] for e in found[start + 1 : end]) <= gap[1]
