"""The shapes of the vectors that XeGPU ops load, store and multiply."""

from xegpu_py.dialects.xegpu.types import Mode, TensorDesc
from xegpu_py.ir.operation import VerifyError


def vnni_factor(bits: int) -> int:
    """Elements of this width that the VNNI transform packs into 32 bits (RFC, vnni_axis)."""
    return 32 // bits


def packed(shape: tuple[int, ...], axis: int, factor: int) -> tuple[int, ...]:
    """A shape with `factor` elements along `axis` moved to a new innermost dimension."""
    return (*(n // factor if i == axis else n for i, n in enumerate(shape)), factor)


def block_shapes(desc: TensorDesc, mode: Mode) -> list[tuple[int, ...]]:
    """The shapes that a block may have in a vector before any transform.

    With an array_length these are the array of blocks, which is how they lie in registers, and the covered block, in
    which the blocks stand side by side along the innermost dimension.
    """
    shape = desc.shape if mode == Mode.VC else desc.fragment()
    count = desc.attr.array_length
    if count == 1:
        return [shape]
    return [(count, *shape), (shape[0], count * shape[1])]


def loaded_shapes(
    desc: TensorDesc,
    mode: Mode,
    transpose: tuple[int, ...] | None,
    transpose_bit_width: int | None,
    vnni_axis: int | None,
) -> list[tuple[int, ...]]:
    """The shapes that a load_nd of the descriptor may have, the preferred one first (RFC, load_nd).

    Raises:
        VerifyError: if the transforms do not fit the descriptor or each other.
    """
    rank = len(desc.shape)
    check_fragments(desc, mode, vnni_axis)
    if transpose is not None and vnni_axis is not None:
        raise VerifyError("VNNI transformation and transpose cannot be combined")
    if transpose_bit_width is not None:
        check_transpose_unit(desc, mode, transpose, transpose_bit_width)
    if transpose is not None and sorted(transpose) != list(range(rank)):
        raise VerifyError(f"transpose must be a permutation of the {rank} dimensions, but got {list(transpose)}")
    if vnni_axis is not None:
        check_vnni(desc, mode, vnni_axis)
    shapes = []
    for shape in block_shapes(desc, mode):
        outer, block = shape[: len(shape) - rank], shape[len(shape) - rank :]
        if transpose is not None:
            unit = (transpose_bit_width or desc.bits) // desc.bits
            units = (*block[:-1], block[-1] // unit)
            moved = tuple(units[i] for i in transpose)
            block = (*moved[:-1], moved[-1] * unit)
        if vnni_axis is not None:
            block = packed(block, vnni_axis, vnni_factor(desc.bits))
        shapes.append((*outer, *block))
        if transpose is not None and unit > 1 and not outer and desc.attr.array_length == 1:
            # As IMEX has it, and the shape_cast that the RFC shows makes.
            shapes.append((*outer, *moved, unit))
    return shapes


def check_fragments(desc: TensorDesc, mode: Mode, vnni_axis: int | None = None) -> None:
    """Check that the elements of each work item's fragment are adjacent (RFC, sg_map).

    Those of a column do after the VNNI transform, for which the RFC has `wi_data = [2, 1]`.
    """
    sg_map = desc.attr.map
    if mode == Mode.SIMT and sg_map and sg_map.wi_data[0] > 1 and vnni_axis != 0:
        raise VerifyError(
            f"the elements of a fragment with wi_data = {list(sg_map.wi_data)} are not contiguous",
            "add vnni_axis = 0 to load a fragment that is part of a column",
        )


def check_transpose_unit(desc: TensorDesc, mode: Mode, transpose: tuple[int, ...] | None, bits: int) -> None:
    """The unit that transpose_bit_width names divides rows, and elements divide it (RFC)."""
    if transpose is None:
        raise VerifyError("transpose_bit_width requires transpose")
    if mode != Mode.VC:
        raise VerifyError("transpose_bit_width is available in VC mode only")
    if bits < desc.bits or bits % desc.bits:
        raise VerifyError(f"transpose_bit_width = {bits} is not a multiple of the element's {desc.bits} bits")
    if desc.shape[-1] * desc.bits % bits:
        raise VerifyError(f"rows of {desc.shape[-1]} x {desc.element} are not divisible into units of {bits} bits")


def check_vnni(desc: TensorDesc, mode: Mode, axis: int) -> None:
    """Check that a VNNI transform fits the elements, the block and the sg_map (RFC, vnni_axis)."""
    if len(desc.shape) != 2:
        raise VerifyError("vnni_axis requires a 2D block")
    if axis not in (0, 1):
        raise VerifyError(f"vnni_axis must be 0 or 1, but got {axis}")
    if desc.bits >= 32:
        raise VerifyError(
            f"vnni_axis requires elements narrower than 32 bits, but got {desc.element}",
            "remove vnni_axis: the transform packs narrow elements into 32 bits",
        )
    factor = vnni_factor(desc.bits)
    if desc.shape[axis] % factor:
        raise VerifyError(f"{desc.shape[axis]} elements along vnni_axis = {axis} are not divisible by {factor}")
    sg_map = desc.attr.map
    if mode == Mode.SIMT and sg_map and sg_map.wi_data[axis] != factor:
        raise VerifyError(
            f"wi_data along vnni_axis = {axis} must be {factor}, but got {sg_map.wi_data[axis]}",
            f"{factor} elements of {desc.element} fill 32 bits",
        )


def scattered_value_shape(desc: TensorDesc) -> tuple[int, ...]:
    """The shape of the loaded or stored vector: the lanes, and outside them the chunk, if any (RFC, load_gather)."""
    return desc.shape[::-1]
