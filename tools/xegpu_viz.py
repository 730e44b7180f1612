"""`xegpu-viz`: pictures of layouts, and of the registers of a DPAS."""

import argparse
import math
import re
from collections.abc import Sequence
from html import escape

from xegpu_py.dialects import iree_vector_ext, xegpu
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Source, position_of
from xegpu_py.ir.module import walk
from xegpu_py.layout import LayoutError, NestedLayout, from_maps, from_sg_map, from_wg_map
from xegpu_py.layout.nested import layout_picture
from xegpu_py.layout.pictures import dpas_picture
from xegpu_py.tools import driver
from xegpu_py.upstream import read_kernels

_DPAS = re.compile(r"dpas\.(\w+)\.(\w+)\.(\d+)\.(\d+)\Z")

_MAP = re.compile(r"#(?:xegpu\.|xetile\.)?(sg_map|wg_map)<(.*)>\Z", re.DOTALL)

_ENTRY = re.compile(r"(\w+)\s*=\s*\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]")

_PARAMETERS = {"sg_map": ("wi_layout", "wi_data"), "wg_map": ("sg_layout", "sg_data")}

_EPILOG = """\
inputs:
  '#iree_vector_ext.nested_layout<...>'  a nested layout
  '#xegpu.sg_map<...>'    the map of a block; needs --shape
  '#xetile.wg_map<...>'   the map of a workgroup's tile; needs --shape, and
                          the map of a block may follow
  dpas.bf.bf.8.8          the registers of a DPAS: types of src1 (B) and
                          src2 (A), depth, repeat count
  kernel.mlir             all layouts in a file
"""

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font-family: Helvetica, Arial, sans-serif; margin: 16px; background: #f6f8fa; color: #1f2328; }}
.with-lane g[data-lane] {{ opacity: 0.35; }}
.with-lane g[data-lane].same {{ opacity: 1; }}
</style>
<h1>{title}</h1>
{pictures}
<script>
// While the pointer is over a cell, the other cells of its lane are shown, and the rest fade.
for (const svg of document.querySelectorAll("svg")) {{
  const cells = [...svg.querySelectorAll("g[data-lane]")];
  const owner = (g) => g.dataset.subgroup + ":" + g.dataset.lane;
  svg.addEventListener("mouseover", (event) => {{
    const cell = event.target.closest("g[data-lane]");
    svg.classList.toggle("with-lane", cell !== null);
    for (const g of cells) g.classList.toggle("same", cell !== null && owner(g) === owner(cell));
  }});
  svg.addEventListener("mouseleave", () => svg.classList.remove("with-lane"));
}}
</script>
</html>
"""


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    description = "Draw the owner of each element of a layout, or the operands of a DPAS in registers."
    examples = [
        "xegpu-viz '#xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8]>' --shape 16x16",
        "xegpu-viz dpas.bf.bf.8.8 -o dpas.html",
    ]
    parser = driver.Parser("xegpu-viz", "LAYOUT|FILE...", description, examples, _EPILOG)
    parser.add_argument("what", nargs="+", metavar="LAYOUT|FILE", help="a layout, a DPAS, or MLIR files")
    output = "output file, .svg or .html ('-', the default, is standard output, as SVG)"
    parser.add_argument("-o", dest="output", metavar="FILE", default="-", help=output)
    parser.add_argument("--shape", type=_shape, help="shape of the distributed vector, such as 8x16; required for maps")
    parser.add_argument("--subgroups", type=driver.positive, metavar="N", help="number of subgroups in the workgroup")
    parser.add_argument("--threads", type=driver.positive, metavar="N", help="number of lanes in a subgroup")
    return parser


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(x\d+)*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape, such as 8x16")
    return tuple(map(int, text.split("x")))


def _map_of(text: str) -> tuple[str, tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """The kind and the parameters of a map; None if the text is not a map.

    Raises:
        LayoutError: if parameters are missing or malformed.
    """
    m = _MAP.match(text.strip())
    if not m:
        return None
    kind, body = m[1], m[2]
    names = _PARAMETERS[kind]
    found = {name: tuple(map(int, numbers.split(","))) for name, numbers in _ENTRY.findall(body)}
    if set(found) != set(names) or _ENTRY.sub("", body).strip(" ,\n"):
        raise LayoutError(f"a {kind} is written as <{', '.join(f'{name} = [..]' for name in names)}>, not as '{body}'")
    return kind, (found[names[0]], found[names[1]])


def _layout_of(texts: Sequence[str], shape: tuple[int, ...] | None) -> tuple[NestedLayout, int | None] | None:
    """The layout in texts, and the number of subgroups if they contain it; None if they are not layouts.

    Raises:
        LayoutError: if they are layouts, but invalid.
    """
    if len(texts) == 1 and "nested_layout<" in texts[0]:
        return NestedLayout.parse(texts[0]), None
    maps = dict(found for text in texts if (found := _map_of(text)))
    if len(maps) != len(texts):
        return None
    if shape is None:
        raise LayoutError("a map does not contain the shape of the distributed vector; add --shape")
    if "wg_map" not in maps:
        return from_sg_map(*maps["sg_map"], shape), None
    groups = maps["wg_map"]
    made = from_maps(*groups, *maps["sg_map"], shape) if "sg_map" in maps else from_wg_map(*groups, shape)
    return made, math.prod(groups[0])


class _Drawing:
    """The pictures for a command line."""

    def __init__(self, parser: driver.Parser, args: argparse.Namespace) -> None:
        self.parser, self.args = parser, args

    def pictures(self) -> list[str]:
        """The SVG text of each picture."""
        what = self.args.what
        try:
            found = _layout_of(what, self.args.shape)
            if found:
                return [self._picture(found[0], self.args.subgroups or found[1])]
            return [svg for text in what for svg in self._one(text)]
        except ValueError as e:
            self.parser.error(str(e))

    def _picture(self, layout: NestedLayout, subgroups: int | None, title: str = "") -> str:
        return layout_picture(layout, subgroups=subgroups, threads=self.args.threads, title=title)

    def _one(self, text: str) -> list[str]:
        m = _DPAS.match(text)
        if m:
            return [dpas_picture(m[1], m[2], SD=int(m[3]), RC=int(m[4]))]
        if "<" in text or text.startswith(("#", "dpas.")):
            raise LayoutError(f"cannot draw '{text}'; --help lists the possible inputs")
        layouts = _layouts_in(self.parser.read(text))
        if not layouts:
            raise LayoutError(f"there is no layout in '{text}'")
        return [self._picture(layout, self.args.subgroups, title) for title, layout in layouts.items()]


def _layouts_in(source: Source) -> dict[str, NestedLayout]:
    """All different layouts in an MLIR file: those of `to_layout`, and those of descriptors with a map.

    Raises:
        DiagnosticError: if the file cannot be parsed.
    """
    module = read_kernels(source, Context.from_pool())
    found: dict[str, NestedLayout] = {}
    for op in [op.opview for op in walk(module.operation)]:
        if isinstance(op, iree_vector_ext.ToLayoutOp):
            layout = op.layout.layout
            if layout not in found.values():
                line = position_of(op.location).line
                found[f"to_layout in line {line}: {op.output.type}"] = layout
        for value in op.operation.results:
            text = str(value.type)
            if not xegpu.TensorDesc.accepts(text):
                continue
            desc = xegpu.TensorDesc.of(value)
            if desc.attr.map:
                layout = from_sg_map(desc.attr.map.wi_layout, desc.attr.map.wi_data, desc.shape)
                found.setdefault(str(desc), layout)
    return found


def _page(pictures: Sequence[str], title: str) -> str:
    # Titles are referred to by id, which must be unique in a page.
    own = [
        svg.replace('id="title"', f'id="title{i}"')
        .replace('id="desc"', f'id="desc{i}"')
        .replace('"title desc"', f'"title{i} desc{i}"')
        for i, svg in enumerate(pictures)
    ]
    return _PAGE.format(title=escape(title), pictures="\n".join(own))


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_args(parser.normalized(argv))
    if not args.output.endswith((".svg", ".html")) and args.output != "-":
        parser.error(f"'{args.output}' is neither .svg nor .html")
    pictures = _Drawing(parser, args).pictures()
    if args.output.endswith(".html"):
        parser.write(args.output, _page(pictures, ", ".join(args.what)))
    elif len(pictures) > 1:
        parser.error(f"there are {len(pictures)} layouts to draw, and an SVG file holds one; write .html")
    else:
        parser.write(args.output, pictures[0])
    return 0


def main() -> None:
    """Entry point of the command `xegpu-viz`."""
    driver.main(run)


if __name__ == "__main__":
    main()
