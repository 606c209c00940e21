"""Compares the outputs of a kernel with the expected ones."""
import numpy as np

import dtypes
from policy import SLACK


class Comparison:
    """The result for one output: a message ("" if it is correct) and the use of the bounds."""

    def __init__(self, message, worst, told):
        self.message = message
        self.worst = worst  # largest ratio of error to bound; correct up to 1
        self.told = told  # share of the elements with a finite bound


def compare(name, array, expected, allowance=0.0):
    """`array`: the memory of an output, with its shape. `expected`: a Number. `allowance`: an
    error that is allowed in addition to the Number's."""
    dtype = expected.dtype
    got = dtypes.from_memory(dtype, array)
    value = np.broadcast_to(expected.value, got.shape)
    bound = np.broadcast_to(expected.error, got.shape)
    told = float(np.isfinite(bound).mean()) if bound.size else 1.0
    worst = 0.0
    if not expected.is_float:
        wrong = (got != value) & ~(bound > 0)
    else:
        # An element is correct if it lies within the bound, rounded to the type.
        with np.errstate(all="ignore"):
            slack = SLACK * bound + allowance
            low = dtypes.round_to(dtype, value - slack)
            high = dtypes.round_to(dtype, value + slack)
            inside = (low <= got) & (got <= high)
            both_nan = np.isnan(got) & np.isnan(value)
            same = got == value
            ratio = np.abs(got - value) / slack
        wrong = ~(inside | both_nan | same | np.isinf(bound))
        ratio = ratio[np.isfinite(ratio)]
        worst = float(ratio.max()) if ratio.size else 0.0
    if not wrong.any():
        return Comparison("", worst, told)
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    bounds = f" within {slack[place]:.3g}" if expected.is_float and slack[place] else ""
    at = ", ".join(str(int(i)) for i in place)
    expected_text = repr(value[place].item())
    return Comparison(
        f"{name}[{at}] is {got[place].item()!r}, expected {expected_text}{bounds}; "
        f"{int(wrong.sum())} of {wrong.size} elements are wrong", worst, told)
