"""What nodes consist of, and how their inputs, shapes and types are drawn."""
from dataclasses import dataclass, field

import numpy as np

NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
         "i32": np.int32, "i64": np.int64, "bool": np.bool_}

# The numbers of TensorProto.DataType.
ONNX_TYPES = {"f32": 1, "u8": 2, "i8": 3, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11}


@dataclass
class Node:
    op: str
    inputs: list  # arrays, None for an absent input
    constants: dict = field(default_factory=dict)  # the positions of inputs that are constant
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    # How results are compared. "exact": the same numbers; "each": a relative error per element;
    # "sum": relative to the largest magnitude of the inputs and the output.
    how: str = "each"
    refill: list = None  # draws other inputs; for the second run


class Fill:
    """How the inputs of a case are drawn."""

    def __init__(self, rng, ends=True, nan=True, infinite=True, tiny=True, low=-8.0, high=8.0):
        self.rng, self.low, self.high = rng, low, high
        self.nan, self.infinite, self.ends, self.tiny = nan, infinite, ends, tiny
        self.share = rng.choice([0.0, 0.05, 0.3, 0.8])
        self.only = rng.random() < 0.1  # all elements are one special value
        self.zeros = rng.random() < 0.05

    def specials(self, dtype):
        info = np.finfo(NUMPY[dtype])
        tiny, small, most = info.smallest_subnormal, info.tiny, info.max
        values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0]
        if self.tiny:
            values += [tiny, -tiny, small, -small]
        if self.ends:
            values += [most, -most, 1 - info.epsneg, 1 + info.eps]
        if self.infinite:
            values += [np.inf, -np.inf] * 2
        if self.nan:
            values += [np.nan] * 2
        return np.array(values, NUMPY[dtype])

    def floats(self, dtype, shape):
        rng = self.rng
        ordinary = rng.uniform(self.low, self.high, shape)
        if rng.random() < 0.3:
            ordinary = np.rint(ordinary)
        ordinary = ordinary.astype(NUMPY[dtype])
        if self.zeros:
            return np.where(rng.random(shape) < 0.5, 0.0, -0.0).astype(NUMPY[dtype])
        specials = self.specials(dtype)
        if self.only:
            return np.full(shape, rng.choice(specials), NUMPY[dtype])
        drawn = rng.choice(specials, shape)
        return np.where(rng.random(shape) < self.share, drawn, ordinary).astype(NUMPY[dtype])

    def integers(self, dtype, shape, small=False):
        info, rng = np.iinfo(NUMPY[dtype]), self.rng
        low, high = max(info.min, -9), 10
        ordinary = rng.integers(low, high, shape).astype(NUMPY[dtype])
        if small:
            return ordinary
        ends = rng.choice(np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1,
                                    info.max // 2], NUMPY[dtype]), shape)
        return np.where(rng.random(shape) < 0.4, ends, ordinary).astype(NUMPY[dtype])

    def draw(self, dtype, shape, small=False):
        shape = tuple(shape)
        if dtype == "bool":
            return self.rng.random(shape) < 0.5
        if dtype in ("f16", "f32", "f64"):
            return self.floats(dtype, shape)
        return self.integers(dtype, shape, small)


def some_shape(rng, least=1, most=3, extent=5):
    return tuple(int(n) for n in rng.integers(1, extent + 1, rng.integers(least, most + 1)))


def broadcast(rng, shape):
    """A shape that broadcasts to this one."""
    own = [1 if rng.random() < 0.25 else n for n in shape]
    return tuple(own[rng.integers(0, len(own)):]) if rng.random() < 0.3 else tuple(own)


def ints(*numbers):
    return np.array(numbers, np.int64)


def float_type(rng):
    return str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))


def number_type(rng):
    return str(rng.choice(["f32", "f32", "f16", "f64", "i32", "i64", "i8", "u8"]))


def made(op, fill, shapes, constants=None, attributes=None, outputs=1, how="each"):
    """A node with drawn inputs `shapes`, pairs (dtype, shape), and `constants` by position."""
    def draw():
        arrays = [fill.draw(dtype, shape) for dtype, shape in shapes]
        for position, array in sorted((constants or {}).items()):
            arrays.insert(position, array)
        return arrays

    return Node(op, draw(), {p: True for p in constants or {}}, attributes or {}, outputs, how,
                refill=draw)
