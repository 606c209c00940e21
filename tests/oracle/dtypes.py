"""The scalar types of workloads: their layout in memory, rounding and wrapping.

Written without ml_dtypes, so that the rounding of bf16 and of the 8-bit floats is the oracle's own.
"""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DType:
    name: str
    bytes: int
    memory: type  # type of the NumPy array that holds the bytes
    kind: str  # "float", "int" or "bool"
    digits: int = 0  # bits of a float's significand, including the hidden bit
    largest: float = 0.0  # finite float
    tiny: float = 0.0  # the smallest positive float, a denormal


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("f16", 2, np.float16, "float", 11, 65504.0, 2.0**-24),
        DType("bf16", 2, np.uint16, "float", 8, float.fromhex("0x1.fep127"), 2.0**-133),
        DType("f32", 4, np.float32, "float", 24, float(np.finfo(np.float32).max), 2.0**-149),
        DType("f64", 8, np.float64, "float", 53, float(np.finfo(np.float64).max), 5e-324),
        DType("i8", 1, np.int8, "int"),
        DType("u8", 1, np.uint8, "int"),
        DType("i32", 4, np.int32, "int"),
        DType("i64", 8, np.int64, "int"),
        DType("bool", 1, np.uint8, "bool"),
        DType("f8e4m3", 1, np.uint8, "float", 4, 448.0, 2.0**-9),
        DType("f8e5m2", 1, np.uint8, "float", 3, 57344.0, 2.0**-16),
        # Two elements share a byte (pack); arrays here have one per byte.
        DType("i4", 1, np.int8, "int"),
        DType("u4", 1, np.uint8, "int"),
    )
}
_LOADED = {"i4": "i8", "u4": "u8"}


def loaded(name):
    """The type of an element that is loaded from a tensor of this type."""
    return _LOADED.get(name, name)


def limits(name):
    """The smallest and the largest integer of a type."""
    if name in _LOADED:
        return (-8, 7) if name == "i4" else (0, 15)
    info = np.iinfo(DTYPES[name].memory)
    return info.min, info.max


def pack(name, array):
    """An array as it lies in a kernel's buffer."""
    if name not in _LOADED:
        return array
    elements = array.reshape(-1).astype(np.uint8) & 15
    elements = np.append(elements, np.zeros(len(elements) % 2, np.uint8))
    return elements[0::2] | elements[1::2] << 4


def is_float(name):
    return DTYPES[name].kind == "float"


def is_short(name):
    """Whether it is a float that is computed in a longer type."""
    return is_float(name) and DTYPES[name].bytes < 4


def arithmetic(name):
    """The type in which floats are computed between two stores: f32 unless they are f64."""
    return "f64" if name == "f64" else "f32"


def roundoff(name):
    """The unit roundoff: half the distance from 1 to the next number."""
    return 2.0 ** -DTYPES[name].digits


def _round_to_bf16_bits(values):
    """The bits of the nearest bf16, ties to even. Rounds once, from f64."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32)
    # If a double rounds to a single halfway between two bf16, it must not be rounded a second time.
    # Therefore, the first rounding is to odd: if the single is not exact, its last bit becomes 1.
    bits = single.view(np.uint32).astype(np.int64)
    exact = single.astype(np.float64)
    inexact = np.isfinite(values) & np.isfinite(single) & (exact != values)
    too_large = inexact & (np.abs(exact) > np.abs(values))
    odd = np.where(inexact, (bits - too_large) | 1, bits)
    rounded = (odd + 0x7FFF + ((odd >> 16) & 1)) >> 16
    rounded = np.where(np.isnan(values), 0x7FC0, rounded)
    return rounded.astype(np.uint16)


def _float8_values():
    """The 256 numbers of each 8-bit format, by their bits."""
    tables = {}
    for name, fraction_bits, bias in (("f8e4m3", 3, 7), ("f8e5m2", 2, 15)):
        code = np.arange(128)
        exponent, fraction = code >> fraction_bits, code % (1 << fraction_bits)
        significand = (fraction + ((exponent > 0) << fraction_bits)).astype(np.float64)
        values = significand * 2.0 ** (np.maximum(exponent, 1) - bias - fraction_bits)
        if name == "f8e4m3":
            values[127] = np.nan
        else:
            values[124], values[125:] = np.inf, np.nan
        tables[name] = np.concatenate([values, -values])
    return tables


_FLOAT8 = _float8_values()


def _round_to_float8_bits(name, values):
    """The bits of the nearest number, ties to even. What is too large becomes the largest one."""
    finite = _FLOAT8[name][:128][_FLOAT8[name][:128] <= DTYPES[name].largest]
    size = np.abs(np.where(np.isnan(values), 0.0, values))
    above = np.minimum(np.searchsorted(finite, size), len(finite) - 1)
    below = np.maximum(above - 1, 0)
    to_above, to_below = np.abs(finite[above] - size), np.abs(size - finite[below])
    even = np.where(above % 2 == 0, above, below)
    bits = np.where(to_above < to_below, above, np.where(to_above > to_below, below, even))
    if name == "f8e5m2":
        bits = np.where(np.isinf(values), 124, bits)
    bits = np.where(np.isnan(values), 127, bits)
    return (bits + 128 * np.signbit(values)).astype(np.uint8)


def to_memory(name, values):
    """The bytes of an array of numbers (f64, int64 or bool) as in a kernel's buffer."""
    dtype = DTYPES[name]
    if name == "bf16":
        return _round_to_bf16_bits(np.asarray(values, np.float64))
    if name in _FLOAT8:
        return _round_to_float8_bits(name, np.asarray(values, np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values).astype(dtype.memory)


def from_memory(name, array):
    """Converts floats to f64, and keeps integers and bool in their types. Exact."""
    if name == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if name in _FLOAT8:
        return _FLOAT8[name][array]
    if is_float(name):
        with np.errstate(invalid="ignore"):  # a signaling NaN
            return array.astype(np.float64)
    return array != 0 if name == "bool" else array


def round_to(name, values):
    """The nearest float of a type, as f64; beyond the largest float, infinite or the largest."""
    if name == "f64":
        return np.asarray(values, np.float64)
    return from_memory(name, to_memory(name, np.asarray(values, np.float64)))


def wrap_integers(name, values):
    """Converts integers to another type, modulo a power of two."""
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(DTYPES[name].memory)


def floats_to_integers(name, values):
    """Truncates and wraps; NaN and infinities give 0."""
    whole = np.trunc(np.where(np.isfinite(values), values, 0.0))
    # Takes the exact value modulo 2^64, then the two's complement.
    wrapped = np.fmod(whole, 2.0**64)
    wrapped = np.where(wrapped < 0, wrapped + 2.0**64, wrapped)
    # Small negative numbers would lose their low bits in the sum above.
    small = np.abs(whole) < 2.0**62
    with np.errstate(invalid="ignore", over="ignore"):
        low = np.where(small, whole, 0.0).astype(np.int64)
        high = np.where(small | (wrapped >= 2.0**64), 0.0, wrapped).astype(np.uint64)
    return wrap_integers(name, np.where(small, low, high.astype(np.int64)))
