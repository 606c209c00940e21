"""Arrays of callers: NumPy's, and those of other libraries by DLPack, without copies where their memory suits."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Sequence

import numpy

from . import errors
from ._workload import Tensor

ALIGNMENT = 64
# NumPy has no bf16 and no 8-bit floats: arrays of their bits. Two elements of a 4-bit type share a byte.
DTYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32", "i64": "int64",
    "bool": "bool", "bf16": "uint16", "f8e4m3": "uint8", "f8e5m2": "uint8", "i4": "uint8", "u4": "uint8",
}
# Libraries whose arrays are returned to their users, and how an array of NumPy becomes theirs without a copy.
_LIBRARIES: dict[str, tuple[str, str]] = {
    "torch": ("torch", "from_numpy"),
    "jax": ("jax.dlpack", "from_dlpack"),
    "jaxlib": ("jax.dlpack", "from_dlpack"),
}
_CPU = 1  # DLPack's number of the device


def numpy_shape(tensor: Tensor) -> tuple[int, ...]:
    if tensor.dtype not in ("i4", "u4"):
        return tensor.shape
    return ((int(numpy.prod(tensor.shape, dtype=numpy.int64)) + 1) // 2,)


def empty(shape: Sequence[int], dtype: str = "float32") -> numpy.ndarray[Any, Any]:
    """An array whose memory kernels use without a copy.

    >>> import hone
    >>> hone.empty((2, 3)).shape
    (2, 3)
    """
    kind = numpy.dtype(DTYPES.get(dtype, dtype))
    size = int(numpy.prod(shape, dtype=numpy.int64)) * kind.itemsize
    memory = numpy.empty(size + ALIGNMENT, numpy.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin:begin + size].view(kind).reshape(tuple(shape))


def library_of(values: Sequence[Any]) -> str:
    """The library of the first array that is not NumPy's; "" if there is none."""
    for value in values:
        library = type(value).__module__.partition(".")[0]
        if library in _LIBRARIES:
            return library
    return ""


def converter(library: str) -> Callable[[Any], Any]:
    """What makes an array of the library share the memory of one of NumPy."""
    if not library:
        return lambda array: array
    module, function = _LIBRARIES[library]
    made: Callable[[Any], Any] = getattr(importlib.import_module(module), function)
    return made


def borrowed(tensor: Tensor, value: Any) -> numpy.ndarray[Any, Any]:
    """The caller's memory as an array of NumPy. ArrayError: its device, type, shape or strides are wrong."""
    expected = f"{DTYPES[tensor.dtype]}{list(numpy_shape(tensor))}"
    array = value if isinstance(value, numpy.ndarray) else _imported(tensor, value)
    if array.dtype != numpy.dtype(DTYPES[tensor.dtype]):
        raise errors.ArrayError(
            f"{tensor.name} has the type {array.dtype}, but the kernel needs {expected}; convert it, as with "
            f"{tensor.name}.astype({DTYPES[tensor.dtype]!r})"
        )
    if array.shape != numpy_shape(tensor):
        raise errors.ArrayError(f"{tensor.name} has the shape {list(array.shape)}, but the kernel needs {expected}")
    if not array.flags.c_contiguous:
        raise errors.ArrayError(
            f"{tensor.name} has the strides {list(array.strides)} in bytes, but the kernel needs a dense row-major array; "
            "copy it, as with numpy.ascontiguousarray or tensor.contiguous()"
        )
    return array


def _imported(tensor: Tensor, value: Any) -> numpy.ndarray[Any, Any]:
    if not hasattr(value, "__dlpack__"):
        raise errors.ArrayError(
            f"{tensor.name} is a {type(value).__name__}; give an array of NumPy, or one that has __dlpack__"
        )
    kind, number = value.__dlpack_device__()
    if int(kind) != _CPU:
        raise errors.ArrayError(
            f"{tensor.name} is on another device (DLPack's kind {int(kind)}, number {number}), but the kernel runs on the "
            "CPU; copy it there, as with tensor.cpu() or array.get()"
        )
    if getattr(value, "requires_grad", False):
        raise errors.ArrayError(f"{tensor.name} needs a gradient, which kernels do not have; give {tensor.name}.detach()")
    if tensor.dtype == "bf16" and type(value).__module__ == "torch":
        value = value.view(importlib.import_module("torch").uint16)
    if tensor.dtype == "bool" and type(value).__module__ == "torch":
        return numpy.asarray(value.numpy())  # NumPy before 2.0 does not import booleans
    try:
        return numpy.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise errors.ArrayError(f"{tensor.name} cannot be used through DLPack: {error}") from None


def aligned(array: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """The array, or a copy if its memory is not aligned."""
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    copy = empty(array.shape, str(array.dtype))
    copy[...] = array
    return copy
