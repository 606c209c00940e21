"""Arrays with error bounds.

A Number holds the result of exact arithmetic (floats in f64, integers exactly, with wrap-around)
and, for each element, a bound on the error of a correct kernel. The bounds follow the usual rules
of rounding analysis (Higham, Accuracy and Stability of Numerical Algorithms):

  an operation     the propagated errors of the operands, and one rounding of the arithmetic
  a sum            the terms' errors, and c * u * sqrt(K) * sum |t|; 0 if all partial sums are exact
  a store          a rounding to the type, which is optional because the stage may be inlined

Floats shorter than f32 are computed in f32 and rounded when they are stored; their sums are f32 sums.
If a bound is infinite, any answer is correct (e.g. for a comparison of nearly equal numbers).
"""
import math

import numpy as np

import dtypes
from policy import ELEMENTARY_ROUNDINGS, INTEGER_DIVISION_BY_ZERO, SUM_CONSTANT

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def normal_cdf(x):
    """erfc(-x / sqrt 2) / 2, accurate even where it magnifies an error of its argument by 1000."""
    with np.errstate(all="ignore"):
        x = np.asarray(x, np.float64)
        exact = -x.astype(np.longdouble) / np.sqrt(np.longdouble(2))
        near = exact.astype(np.float64)
        rest = np.where(np.isfinite(x), exact - near, 0.0).astype(np.float64)
        return (_erfc(near) - rest * (2 / math.sqrt(math.pi)) * np.exp(-near * near)) / 2


class Sums:
    """The additional error of sums that is allowed in a design space for a job with a tolerance."""

    tolerance = 0.0


def _quiet(function):
    def run(*arguments, **options):
        with np.errstate(all="ignore"):
            return function(*arguments, **options)

    return run


class Number:
    def __init__(self, dtype, value, error=None, each_rounds=False):
        self.dtype = dtype
        self.value = np.asarray(value)
        zero = np.zeros(1).reshape((1,) * self.value.ndim) if self.value.ndim else np.zeros(())
        self.error = zero if error is None else np.asarray(error, np.float64)
        self.each_rounds = each_rounds  # operations may round to the dtype, not only to f32

    # -- construction --------------------------------------------------------------------------

    @classmethod
    def constant(cls, dtype, value, ndim=0):
        shape = (1,) * ndim
        if not dtypes.is_float(dtype):
            kind = bool if dtype == "bool" else dtypes.DTYPES[dtype].memory
            return cls(dtype, np.full(shape, value, kind))
        exact = np.full(shape, float(value))
        rounded = dtypes.round_to(dtype, exact)
        with np.errstate(invalid="ignore"):
            error = np.where(rounded == exact, 0.0, np.abs(rounded - exact))
        return cls(dtype, exact, np.where(np.isnan(exact), 0.0, error))

    @property
    def is_float(self):
        return dtypes.is_float(self.dtype)

    @property
    def unsure(self):
        return self.error > 0

    def _like(self, value, error):
        return Number(self.dtype, value, error, each_rounds=self.each_rounds)

    def reshaped(self, function):
        """Rearranges the elements: a transposition, a slice, a broadcast."""
        error = np.broadcast_to(self.error, self.value.shape)
        return self._like(function(self.value), function(error))

    def __getitem__(self, key):
        return self.reshaped(lambda array: array[key])

    def transpose(self, *axes):
        return self.reshaped(lambda array: array.transpose(*axes))

    def doubted(self, where):
        """Any value is correct where the condition holds."""
        return self._like(self.value, np.where(where, np.inf, self.error))

    # -- rounding -------------------------------------------------------------------------------

    def _rounded(self, value, carried, sources, roundings=1.0, exact=False):
        """The result of an operation, with propagated errors and roundings of the arithmetic."""
        name = self.dtype if self.each_rounds else dtypes.arithmetic(self.dtype)
        info = dtypes.DTYPES[name]
        if name == "f64":
            is_exact = (value == np.rint(value)) & (np.abs(value) <= 2.0**53)
        else:
            is_exact = dtypes.round_to(name, value) == value
        own = roundings * (dtypes.roundoff(name) * np.abs(value) + info.tiny)
        if not exact:
            own = np.where(is_exact & (roundings <= 1.0), 0.0, own)
        error = carried + own
        # Near the largest number, contraction decides whether the result overflows.
        error = np.where(np.isfinite(value) & (np.abs(value) + error > info.largest), np.inf, error)
        anything = np.zeros(())
        for source in sources:
            anything = np.maximum(anything, np.where(np.isinf(source.error), np.inf, 0.0))
        error = np.where(np.isfinite(value), np.where(np.isnan(error), np.inf, error), anything)
        return self._like(value, np.maximum(error, anything))

    @_quiet
    def stored(self):
        """The result of a stage: rounded to the type, or unrounded if the stage is inlined."""
        if not dtypes.is_short(self.dtype):
            return self
        low = dtypes.round_to(self.dtype, self.value - self.error)
        high = dtypes.round_to(self.dtype, self.value + self.error)
        error = np.maximum(np.abs(low - self.value), np.abs(high - self.value))
        error = np.where(np.isfinite(self.value), np.maximum(error, self.error), self.error)
        return self._like(self.value, error)

    @_quiet
    def cast(self, to):
        if to == self.dtype:
            return self
        if to == "bool":
            zero = Number.constant(self.dtype, 0, self.value.ndim)
            return self.equal(zero).negated()
        if not dtypes.is_float(to):
            if not self.is_float:
                return Number(to, dtypes.wrap_integers(to, self.value), self.error)
            low = np.trunc(self.value - self.error)
            unsure = (self.error > 0) & (low != np.trunc(self.value + self.error))
            return Number(to, dtypes.floats_to_integers(to, self.value),
                          np.where(unsure | np.isinf(self.error), np.inf, 0.0))
        if not self.is_float:
            # Converts to f32 directly; going through f64 would round twice.
            if to == "f32":
                return Number(to, self.value.astype(np.float32).astype(np.float64), self.error)
            double = self.value.astype(np.float64)
            value = dtypes.round_to(to, double)
            far = np.abs(double) > 2.0**53
            twice = np.where(far & (to != "f64"), np.abs(value) * 2 * dtypes.roundoff(to), 0.0)
            return Number(to, value, np.maximum(twice, self.error))
        value = dtypes.round_to(to, self.value)
        low = dtypes.round_to(to, self.value - self.error)
        high = dtypes.round_to(to, self.value + self.error)
        error = np.where(self.error == 0, 0.0, np.maximum(value - low, high - value))
        error = np.where(np.isnan(error), np.where(self.error > 0, np.inf, 0.0), error)
        return Number(to, value, error, each_rounds=self.each_rounds)

    # -- arithmetic -----------------------------------------------------------------------------

    def _either(self, other):
        return np.where((self.error > 0) | (other.error > 0), np.inf, 0.0)

    @_quiet
    def __add__(self, other):
        value = self.value + other.value
        if not self.is_float:
            return self._like(value, self._either(other))
        return self._rounded(value, self.error + other.error, (self, other))

    @_quiet
    def __sub__(self, other):
        value = self.value - other.value
        if not self.is_float:
            return self._like(value, self._either(other))
        return self._rounded(value, self.error + other.error, (self, other))

    @_quiet
    def __mul__(self, other):
        value = self.value * other.value
        if not self.is_float:
            return self._like(value, self._either(other))
        carried = np.zeros(())
        for one, two in ((self, other), (other, self)):
            carried = carried + np.where(two.error > 0, np.abs(one.value) * two.error, 0.0)
        carried = carried + self.error * other.error
        return self._rounded(value, carried, (self, other))

    @_quiet
    def __truediv__(self, other):
        if not self.is_float:
            return self._like(_divide(self.value, other.value), self._either(other))
        value = self.value / other.value
        least = np.abs(other.value) - other.error
        carried = np.where(least > 0, (self.error + np.abs(value) * other.error) / least,
                           np.where(self.error + other.error > 0, np.inf, 0.0))
        return self._rounded(value, carried, (self, other), roundings=2.0)

    @_quiet
    def __neg__(self):
        return self._like(-self.value, self.error)

    @_quiet
    def abs(self):
        return self._like(np.abs(self.value), self.error)

    @_quiet
    def _extremum(self, other, second_wins):
        # The first operand, if they are equal or unordered.
        value = np.where(second_wins, other.value, self.value)
        if not self.is_float:
            return self._like(value, self._either(other))
        unordered = np.isnan(self.value) | np.isnan(other.value)
        largest = np.maximum(self.error, other.error)
        return self._like(value, np.where(unordered, self.error, largest))

    def maximum(self, other):
        return self._extremum(other, self.value < other.value)

    def minimum(self, other):
        return self._extremum(other, other.value < self.value)

    @_quiet
    def apply(self, name):
        """An elementary function. All of them are monotone where they are defined."""
        function = _FUNCTIONS[name]
        value = function(self.value)
        ends = [function(self.value - self.error), function(self.value + self.error)]
        carried = np.maximum(np.abs(ends[0] - value), np.abs(ends[1] - value))
        carried = np.where(self.error == 0, 0.0, np.where(np.isnan(carried), np.inf, carried))
        return self._rounded(value, carried, (self,), roundings=ELEMENTARY_ROUNDINGS)

    @_quiet
    def whole(self, name):
        """Rounds to whole numbers, exactly. All roundings are monotone."""
        function = _ROUNDINGS[name]
        value = function(self.value)
        ends = [function(self.value - self.error), function(self.value + self.error)]
        error = np.maximum(np.abs(ends[0] - value), np.abs(ends[1] - value))
        return self._like(value, np.where(self.error == 0, 0.0,
                                          np.where(np.isnan(error), np.inf, error)))

    @_quiet
    def power(self, exponent):
        """A power is monotone in the base where that keeps its sign, and in the exponent."""
        value = np.power(self.value, exponent.value)
        away = np.zeros(())
        for base in (self.value - self.error, self.value + self.error):
            for other in (exponent.value - exponent.error, exponent.value + exponent.error):
                away = np.maximum(away, np.abs(np.power(base, other) - value))
        positive = self.value > self.error
        turns_at_zero = ((exponent.error == 0) & (exponent.value >= 1)
                         & (exponent.value == np.rint(exponent.value)))
        exact = (self.error == 0) & (exponent.error == 0)
        away = np.where((positive | turns_at_zero) & ~np.isnan(away), away, np.inf)
        power = self._rounded(value, np.where(exact, 0.0, away), (self, exponent),
                              roundings=ELEMENTARY_ROUNDINGS)
        return self._like(value, np.where(exact | np.isfinite(value), power.error, np.inf))

    def _shifted(self, count, shift):
        # A count may be negative or larger than the width.
        inside = np.clip(count.value.astype(np.int64), 0, 63)
        return self._like(shift(self.value.astype(np.int64), inside), self._either(count))

    @_quiet
    def shifted_left(self, count):
        places = count.value.astype(np.int64)
        return self._shifted(count, lambda value, inside: np.where(
            (places < 0) | (places > 63), 0, value << inside).astype(self.value.dtype))

    @_quiet
    def shifted_right(self, count):
        places = count.value.astype(np.int64)
        return self._shifted(count, lambda value, inside: np.where(
            places < 0, value >> 63, value >> inside).astype(self.value.dtype))

    # -- conditions -----------------------------------------------------------------------------

    def _condition(self, value, unsure):
        return Number("bool", value, np.where(unsure, np.inf, 0.0))

    @_quiet
    def less(self, other, or_equal=False):
        value = self.value <= other.value if or_equal else self.value < other.value
        margin = self.error + other.error
        difference = np.abs(np.subtract(self.value, other.value, dtype=np.float64))
        return self._condition(value, (margin > 0) & ~(difference > margin))

    @_quiet
    def equal(self, other):
        margin = self.error + other.error
        difference = np.abs(np.subtract(self.value, other.value, dtype=np.float64))
        return self._condition(self.value == other.value, (margin > 0) & ~(difference > margin))

    def both(self, other):
        decided = (~self.unsure & ~self.value) | (~other.unsure & ~other.value)
        return self._condition(self.value & other.value,
                               (self.unsure | other.unsure) & ~decided)

    def negated(self):
        return self._condition(~self.value, self.unsure)

    def any_of(self, other):
        return self.negated().both(other.negated()).negated()

    @_quiet
    def select(self, then, otherwise):
        """self ? then : otherwise, element by element."""
        value = np.where(self.value, then.value, otherwise.value)
        error = np.where(self.value, then.error, otherwise.error)
        if not then.is_float:
            apart = np.where(then.value != otherwise.value, np.inf, 0.0)
        else:
            apart = np.abs(then.value - otherwise.value)
            apart = np.where(np.isnan(apart), np.inf, apart)
        doubt = np.maximum(then.error, otherwise.error) + apart
        return then._like(value, np.where(self.unsure, doubt, error))

    # -- reductions -----------------------------------------------------------------------------

    @_quiet
    def sum(self, axes, where=True):
        where = np.broadcast_to(where, self.value.shape)
        zero = np.zeros((), self.value.dtype)
        terms = np.where(where, self.value, zero)
        error = np.where(where, self.error, 0.0).sum(axes)
        if not self.is_float:
            value = terms.sum(axes, dtype=terms.dtype)
            return self._like(value, np.where(error > 0, np.inf, 0.0))
        count = where.sum(axes)
        magnitude = np.abs(terms).sum(axes)
        whole = (terms == np.rint(terms)).all(axes)
        return self._of_sum(terms.sum(axes), error, magnitude, count, whole)

    def _of_sum(self, value, carried, magnitude, count, whole):
        name = dtypes.arithmetic(self.dtype)
        root = SUM_CONSTANT * np.sqrt(count)
        own = np.minimum(root, np.maximum(count - 1, 0)) * dtypes.roundoff(name) * magnitude
        # Sums of whole numbers are exact if all partial sums fit into the significand.
        own = np.where(whole & (magnitude <= 2.0 ** dtypes.DTYPES[name].digits), 0.0, own)
        own = own + Sums.tolerance * magnitude
        error = carried + own
        error = np.where(np.isnan(error), np.where(np.isfinite(value), np.inf, 0.0), error)
        far = np.isfinite(value) & (magnitude + error > dtypes.DTYPES[name].largest)
        return self._like(value, np.where(far, np.inf, error))

    @_quiet
    def prod(self, axes, where=True):
        where = np.broadcast_to(where, self.value.shape)
        one = np.ones((), self.value.dtype)
        terms = np.where(where, self.value, one)
        value = terms.prod(axes, dtype=terms.dtype)
        if not self.is_float:
            unsure = (np.where(where, self.error, 0.0) > 0).any(axes)
            return self._like(value, np.where(unsure, np.inf, 0.0))
        name = dtypes.arithmetic(self.dtype)
        size = np.abs(terms)
        most = (size + np.where(where, self.error, 0.0)).prod(axes)
        count = where.sum(axes)
        # Bounds of all partial products, in any order.
        largest = np.maximum(size, 1.0).prod(axes)
        least = np.where(size > 0, np.minimum(size, 1.0), 1.0).prod(axes)
        own = count * dtypes.roundoff(name) * most
        whole = (terms == np.rint(terms)).all(axes)
        own = np.where(whole & (largest <= 2.0 ** dtypes.DTYPES[name].digits), 0.0, own)
        error = (most - size.prod(axes)) + own
        far = (largest > dtypes.DTYPES[name].largest) | (least < dtypes.DTYPES[name].tiny * 2.0**30)
        return self._like(value, np.where(far | np.isnan(error), np.inf, error))

    @_quiet
    def extreme(self, axes, largest, where=True):
        """The maximum or minimum, ignoring NaN; the neutral element if there are no terms."""
        where = np.broadcast_to(where, self.value.shape)
        reduce = np.max if largest else np.min
        if not self.is_float:
            info = np.iinfo(self.value.dtype)
            neutral = info.min if largest else info.max
            value = reduce(np.where(where, self.value, neutral), axis=axes)
            unsure = (np.where(where, self.error, 0.0) > 0).any(axes)
            return self._like(value, np.where(unsure, np.inf, 0.0))
        taken = where & ~np.isnan(self.value)
        neutral = -np.inf if largest else np.inf
        value = reduce(np.where(taken, self.value, neutral), axis=axes)
        return self._like(value, np.where(taken, self.error, 0.0).max(axes))


def _divide(a, b):
    """Integer division towards zero. The smallest number divided by -1 wraps."""
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    quotient = a // safe
    if a.dtype.kind == "i":
        # NumPy rounds towards minus infinity.
        inexact = (a - quotient * safe) != 0
        quotient = quotient + (inexact & ((a < 0) != (safe < 0))).astype(a.dtype)
        quotient = np.where(safe == -1, -a, quotient)
    return np.where(b == 0, np.array(INTEGER_DIVISION_BY_ZERO, a.dtype), quotient)


def _sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


_FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "erf": _erf,
    "normal_cdf": normal_cdf,
    "sigmoid": _sigmoid,
}

_ROUNDINGS = {"round": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


@_quiet
def contract(subscripts, a, b):
    """A sum of products in np.einsum's notation: one stage of a matrix product or a convolution."""
    if not a.is_float:
        value = np.einsum(subscripts, a.value, b.value)
        return a._like(value.astype(a.value.dtype), None)
    sides, out = subscripts.split("->")
    extents = {}
    for letters, number in zip(sides.split(","), (a, b)):
        extents.update(zip(letters, number.value.shape))
    count = math.prod(extent for letter, extent in extents.items() if letter not in out)
    einsum = lambda x, y: np.einsum(subscripts, x, y, optimize=True)
    value = einsum(a.value, b.value)
    magnitude = einsum(np.abs(a.value), np.abs(b.value))
    carried = np.zeros_like(magnitude)
    for one, two in ((a, b.error), (b, a.error)):
        if not two.any():
            continue
        other = b.value if one is a else a.value
        error = np.broadcast_to(two, other.shape)
        carried += einsum(np.abs(a.value), error) if one is a else einsum(error, np.abs(b.value))
    whole = all((x.value == np.rint(x.value)).all() for x in (a, b))
    result = a._of_sum(value, carried, magnitude, count, np.bool_(whole))
    if not whole:
        # Each product is also rounded, unless it is fused with the addition.
        result = a._like(value, result.error + magnitude * dtypes.roundoff(
            dtypes.arithmetic(a.dtype)))
    return result
