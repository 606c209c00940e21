"""Draws inputs. A filling is a kind of numbers with a name. Equal seeds give equal bytes."""
import zlib

import numpy as np

import dtypes


def _uniform(rng, shape, dtype):
    return rng.uniform(-1, 1, shape)


def _normal(rng, shape, dtype):
    return rng.standard_normal(shape)


def _whole(rng, shape, dtype):
    return rng.integers(-4, 5, shape)


def _ones(rng, shape, dtype):
    return np.ones(shape)


def _offset(rng, shape, dtype):
    """A large mean and a small deviation, for which E[x^2] - E[x]^2 cancels."""
    return 1e4 + rng.standard_normal(shape)


def _wide(rng, shape, dtype):
    return rng.uniform(-12, 12, shape)


def _very_wide(rng, shape, dtype):
    """A range in which exp(x) becomes denormal in f32."""
    return rng.uniform(-104, 104, shape)


def _denormal(rng, shape, dtype):
    tiny = dtypes.DTYPES[dtype].tiny
    return rng.integers(-100, 101, shape) * tiny


def _special(rng, shape, dtype):
    """Infinities, NaN and zeros of both signs among small whole numbers, which give ties."""
    values = rng.integers(-3, 4, shape).astype(np.float64)
    some = rng.random(shape)
    for bound, value in ((0.04, np.nan), (0.09, np.inf), (0.14, -np.inf), (0.24, -0.0)):
        values = np.where(some < bound, value, values)
        some = np.where(some < bound, 2.0, some)
    return values


def _positive(rng, shape, dtype):
    return rng.uniform(0.5, 2.0, shape)


FILLINGS = {
    "uniform": _uniform,
    "normal": _normal,
    "whole": _whole,
    "ones": _ones,
    "offset": _offset,
    "wide": _wide,
    "very_wide": _very_wide,
    "denormal": _denormal,
    "special": _special,
    "positive": _positive,
}


def _small_integers(rng, shape, dtype):
    return rng.integers(0 if dtype in ("u8", "u4") else -4, 5, shape)


def _any_integers(rng, shape, dtype):
    low, high = dtypes.limits(dtype)
    return rng.integers(low, high, shape, dtypes.DTYPES[dtype].memory, endpoint=True)


def _ends(rng, shape, dtype):
    """Near the ends of the range; for i64 also near 2^53, beyond which f64 is not exact."""
    low, high = dtypes.limits(dtype)
    marks = [low, high - 8]
    if dtype == "i64":
        marks += [2**53 - 4, -(2**53) - 4]
    near = rng.integers(0, 9, shape, np.int64)
    marks = np.array(marks, np.int64)[rng.integers(0, len(marks), shape)]
    return (marks + near).astype(dtypes.DTYPES[dtype].memory)


def _far(rng, shape, dtype):
    """Numbers of one sign, far from 0; f64 cannot represent those of i64."""
    least, most = dtypes.limits(dtype)
    low, high = (most // 4, most // 2)
    if least < 0 and rng.integers(0, 2):
        low, high = (least // 2, least // 4)
    return rng.integers(low, high, shape, dtypes.DTYPES[dtype].memory, endpoint=True)


INTEGER_FILLINGS = {
    "ones": lambda rng, shape, dtype: np.ones(shape, np.int64),
    "whole": _small_integers,
    "any": _any_integers,
    "ends": _ends,
    "far": _far,
}


def draw(filling, dtype, shape, seed, name, bound=0):
    """The memory of one input. `bound`: its elements are at least 0 and less, unless it is 0."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if bound:
        return rng.integers(0, bound, shape, np.int64).astype(dtypes.DTYPES[dtype].memory)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.uint8)
    if dtypes.is_float(dtype):
        fill = FILLINGS.get(filling, _normal)
        return dtypes.to_memory(dtype, fill(rng, shape, dtype))
    fill = INTEGER_FILLINGS.get(filling, _small_integers)
    return fill(rng, shape, dtype).astype(dtypes.DTYPES[dtype].memory)
