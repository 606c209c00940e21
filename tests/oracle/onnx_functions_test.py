"""Functions of the workload language that ONNX also has: their definitions agree with ONNX Runtime's."""
import unittest

import numpy as np

import onnx_oracle
from number import Number

_X = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 3.0, -7.25, 1e9, 0.0, np.inf, -np.inf],
              np.float32)


def _number(array):
    kinds = {"f": "f32", "u": "u8"}
    value = array.astype(np.float64) if array.dtype.kind == "f" else array
    return Number(kinds[array.dtype.kind], value)


@unittest.skipUnless(onnx_oracle.AVAILABLE, "ONNX Runtime is not installed")
class OnnxFunctionsTest(unittest.TestCase):
    def test_roundings(self):
        for name, node in (("round", "Round"), ("floor", "Floor"), ("ceil", "Ceil")):
            theirs = onnx_oracle.run_node(node, [_X])[0]
            np.testing.assert_array_equal(_number(_X).whole(name).value, theirs)

    def test_powers(self):
        bases = np.repeat(_X, 7)
        exponents = np.tile(np.array([0, 1, 2, 3, -1, 0.5, -2.5], np.float32), len(_X))
        theirs = onnx_oracle.run_node("Pow", [bases, exponents])[0]
        with np.errstate(over="ignore"):
            ours = _number(bases).power(_number(exponents)).value.astype(np.float32)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)

    def test_shifts(self):
        values = np.repeat(np.arange(0, 256, 5, dtype=np.uint8), 8)
        counts = np.tile(np.arange(8, dtype=np.uint8), len(values) // 8)
        for direction, ours in (("LEFT", Number.shifted_left), ("RIGHT", Number.shifted_right)):
            theirs = onnx_oracle.run_node("BitShift", [values, counts], direction=direction)[0]
            np.testing.assert_array_equal(ours(_number(values), _number(counts)).value, theirs)


if __name__ == "__main__":
    unittest.main()
