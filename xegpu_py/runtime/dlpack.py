"""Arrays of other libraries as numpy arrays of the same memory, by DLPack.

numpy's own `from_dlpack` supports neither bf16 nor 8-bit floats, and makes read-only arrays.

Source: DLPack, dlpack.h of version 1.1, and its Python specification.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

_CPU = (1, 3)
"""Devices in the host's memory: kDLCPU and kDLCUDAHost."""

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL, _E4M3FN, _E5M2 = 0, 1, 2, 4, 6, 10, 12

_DTYPES: dict[tuple[int, int], Any] = {
    **{(_INT, bits): np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{(_UINT, bits): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{(_FLOAT, bits): np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    (_BFLOAT, 16): np.dtype(ml_dtypes.bfloat16),
    (_BOOL, 8): np.dtype(bool),
    (_E4M3FN, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (_E5M2, 8): np.dtype(ml_dtypes.float8_e5m2),
}
"""The numpy types by DLPack's type code and width."""


class _Tensor(ctypes.Structure):
    """`DLTensor`, with which a `DLManagedTensor` begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Memory:
    """The memory of a capsule. numpy arrays refer to this object, which keeps the capsule alive."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self.capsule, self.__array_interface__ = capsule, interface


def from_dlpack(given: Any) -> np.ndarray[Any, Any]:
    """A numpy array of the memory of an object with `__dlpack__`; nothing is copied.

    Raises:
        TypeError: if it is not in the host's memory, or numpy has no type for its elements.
    """
    device = given.__dlpack_device__()[0]
    if int(device) not in _CPU:
        raise TypeError(f"an array must lie in the host's memory, but DLPack says device {int(device)}")
    capsule = given.__dlpack__()
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(address(capsule, b"dltensor"))
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise TypeError(
            f"DLPack's elements of code {tensor.code}, {tensor.bits} bits and {tensor.lanes} lanes have no type"
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.ndim]) if tensor.strides else None
    data = (tensor.data or 0) + tensor.byte_offset
    if not data or 0 in shape:
        return np.zeros(shape, dtype)
    bits = f"|u{dtype.itemsize}" if dtype.itemsize == 1 else f"<u{dtype.itemsize}"
    interface = {"shape": shape, "typestr": bits, "strides": strides, "data": (data, False), "version": 3}
    return np.asarray(_Memory(capsule, interface)).view(dtype)
