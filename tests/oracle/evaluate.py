"""Evaluates workloads in text form, with an error bound for every element."""
import math

import numpy as np

import dtypes
from number import Number

# The number of points of a stage that are computed at a time.
_CHUNK = 1 << 20


def evaluate(workload, inputs):
    """`inputs`: Numbers by input name. Returns Numbers by output name."""
    tensors = dict(inputs)
    for stage in workload.stages:
        for name, number in zip(stage.names, _stage(stage, tensors)):
            tensors[name] = number.stored()
    return {name: tensors[name] for name in workload.outputs()}


def _stage(stage, tensors):
    extents = [extent for _, extent in stage.spatial + stage.reduce]
    rows = stage.spatial[0][1] if stage.spatial else 1
    step = max(1, _CHUNK * rows // max(1, math.prod(extents)))
    parts = [_Domain(stage, tensors, begin, min(rows, begin + step)).compute()
             for begin in range(0, rows, step)]
    return [_joined(components) for components in zip(*parts)]


def _joined(parts):
    if len(parts) == 1:
        return parts[0]
    error = np.concatenate([np.broadcast_to(part.error, part.value.shape) for part in parts])
    return Number(parts[0].dtype, np.concatenate([part.value for part in parts]), error)


class _Domain:
    """Some rows of a stage. Each axis is an array with its own dimension."""

    def __init__(self, stage, tensors, begin, end):
        self.stage, self.tensors = stage, tensors
        axes = stage.spatial + stage.reduce
        self.rank = len(axes)
        self.spatial = len(stage.spatial)
        self.shape = [extent for _, extent in axes]
        if stage.spatial:
            self.shape[0] = end - begin
        self.axes = {}
        for d, (name, extent) in enumerate(axes):
            values = np.arange(begin, end) if d == 0 and stage.spatial else np.arange(extent)
            self.axes[name] = values.reshape([-1 if d == e else 1 for e in range(self.rank)])

    def compute(self):
        values = [self._full(self._value(node)) for node in self.stage.values]
        if not self.stage.reducer:
            return values
        where = self._hold(self.stage.guards)
        axes = tuple(range(self.spatial, self.rank))
        reducer = self.stage.reducer
        if reducer in ("argmax", "argmin"):
            return _arg_extreme(values, where, self.spatial, reducer == "argmax")
        if reducer == "online_softmax":
            return _online_softmax(values, where, axes)
        if reducer in ("max", "min"):
            return [values[0].extreme(axes, reducer == "max", where)]
        return [getattr(values[0], reducer)(axes, where)]

    def _full(self, number):
        return Number(number.dtype, np.broadcast_to(number.value, self.shape),
                      np.broadcast_to(number.error, self.shape))

    def _index(self, index):
        kind, *rest = index
        if kind == "number":
            return np.full((1,) * self.rank, rest[0], np.int64)
        if kind == "axis":
            return self.axes[rest[0]]
        left, right = (self._index(part) for part in rest)
        if kind == "+":
            return left + right
        if kind == "-":
            return left - right
        if kind == "*":
            return left * right
        return left // right if kind == "/" else left % right

    def _hold(self, guards):
        """Where all guards hold."""
        where = np.ones(self.shape, bool)
        for operator, left, right in (comparison for guard in guards for comparison in guard):
            where = where & _COMPARISONS[operator](self._index(left), self._index(right))
        return where

    def _value(self, node):
        if node.op == "const":
            return Number.constant(node.dtype, node.value, self.rank)
        if node.op == "index":
            return Number("i64", self._index(node.indices[0]))
        if node.op == "load":
            return self._load(node)
        operands = [self._value(operand) for operand in node.operands]
        if node.op == "where":
            return Number("bool", self._hold(node.guards)).select(*operands)
        if node.op == "cast":
            return operands[0].cast(node.dtype)
        return _OPERATIONS[node.op](*operands)

    def _load(self, node):
        tensor = self.tensors[node.tensor]
        # Affine indices outside the guards may lie outside the tensor. Computed ones are clamped.
        unsure = np.zeros((1,) * self.rank, bool)
        indices = []
        for index, extent in zip(node.indices, tensor.value.shape):
            if index[0] == "at":
                number = self._value(index[1])
                unsure = unsure | number.unsure
                place = number.value
            else:
                place = self._index(index)
            indices.append(np.clip(place, 0, extent - 1).astype(np.int64))
        if not indices:
            return tensor.reshaped(lambda array: array.reshape((1,) * self.rank))
        element = tensor[tuple(indices)]
        if not unsure.any():
            return element
        shape = np.broadcast_shapes(unsure.shape, element.value.shape)
        return element.reshaped(lambda array: np.broadcast_to(array, shape)).doubted(unsure)


def _arg_extreme(values, where, spatial, largest):
    # The values that are compared may have been rounded to a short type.
    value, index = (
        number.reshaped(lambda array: array.reshape(array.shape[:spatial] + (-1,)))
        for number in (values[0].stored(), values[1]))
    where = where.reshape(where.shape[:spatial] + (-1,))
    best = value.extreme(-1, largest, where)
    with np.errstate(invalid="ignore"):
        if value.is_float:
            apart = np.abs(value.value - best.value[..., None])
            near = ~(apart > value.error + np.asarray(best.error)[..., None])
            near = (near | (value.value == best.value[..., None])) & where
        else:
            near = (value.value == best.value[..., None]) & where
    nan = np.isnan(value.value) & where if value.is_float else np.zeros(where.shape, bool)
    at = np.where(near & ~nan, index.value, np.iinfo(index.value.dtype).max).min(-1)
    nothing = ~(near & ~nan).any(-1)
    at = np.where(nothing, -1, at).astype(index.value.dtype)
    doubt = ((near & ~nan).sum(-1) > 1) & ((near & ~nan) & value.unsure).any(-1)
    return [best, Number(index.dtype, at, np.where(doubt, np.inf, 0.0))]


def _online_softmax(values, where, axes):
    x, weight = values
    top = x.extreme(axes, True, where)
    kept = Number(x.dtype, top.value.reshape(top.value.shape + (1,) * len(axes)),
                  np.reshape(np.broadcast_to(top.error, top.value.shape),
                             top.value.shape + (1,) * len(axes)))
    terms = weight * (x - kept).apply("exp")
    with np.errstate(invalid="ignore"):
        empty = x.value == -np.inf
    total = terms.sum(axes, where & ~empty)
    # A kernel starts with lower maxima and rescales at most once per term. Each rescaling rounds,
    # and exp(a) * exp(b) propagates the roundings of a and b.
    with np.errstate(all="ignore"):
        finite = np.where(where & np.isfinite(x.value), x.value, kept.value)
        span = (kept.value - finite).max(axes)
        u = dtypes.roundoff(dtypes.arithmetic(x.dtype))
        magnitude = np.where(where & ~empty, np.abs(terms.value), 0.0).sum(axes)
        count = where.sum(axes)
        rescaled = u * magnitude * (2 * span + 8 * np.sqrt(count) + 8)
        rescaled = np.where(np.isnan(rescaled), np.inf, rescaled)
    return [top, Number(x.dtype, total.value, total.error + rescaled)]


_COMPARISONS = {"<": np.less, "<=": np.less_equal, "==": np.equal}
_OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<<": Number.shifted_left,
    ">>": Number.shifted_right,
    "pow": Number.power,
    "min": Number.minimum,
    "max": Number.maximum,
    "neg": lambda a: -a,
    "abs": Number.abs,
    "<": Number.less,
    "<=": lambda a, b: a.less(b, or_equal=True),
    "==": Number.equal,
    "and": Number.both,
    "or": Number.any_of,
    "not": Number.negated,
    "select": Number.select,
}
for _name in ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "normal_cdf"):
    _OPERATIONS[_name] = lambda a, name=_name: a.apply(name)
for _name in ("round", "floor", "ceil", "trunc"):
    _OPERATIONS[_name] = lambda a, name=_name: a.whole(name)
