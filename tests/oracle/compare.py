"""Compares what a kernel gave with what it should have given."""
import numpy as np

import dtypes
from policy import SLACK


class Comparison:
    """Of one output: a message where it is wrong, else "", and how much the bounds could tell."""

    def __init__(self, message, worst, told):
        self.message = message
        self.worst = worst  # largest error over its bound; at most 1 is right
        self.told = told  # share of the elements whose bound is finite


def compare(name, array, expected, share=0.0):
    """`array`: the memory of an output, shaped. `expected`: a Number. `share`: of the largest
    element, a further error that is allowed."""
    dtype = expected.dtype
    got = dtypes.from_memory(dtype, array)
    value = np.broadcast_to(expected.value, got.shape)
    bound = np.broadcast_to(expected.error, got.shape)
    told = float(np.isfinite(bound).mean()) if bound.size else 1.0
    worst = 0.0
    if not expected.is_float:
        wrong = (got != value) & ~(bound > 0)
    else:
        # What lies within the bound, and is rounded to the type then, is right.
        with np.errstate(all="ignore"):
            finite = np.where(np.isfinite(value), np.abs(value), 0.0)
            slack = SLACK * bound + share * finite.max(initial=0.0)
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
