import unittest

import numpy as np

from evaluate import evaluate
from number import Number
from workload_text import parse


def _run(text, **arrays):
    workload = parse("workload w\n" + text)
    kinds = {tensor.name: tensor.dtype for tensor in workload.inputs}
    return evaluate(workload, {name: Number(kinds[name], np.asarray(array))
                               for name, array in arrays.items()})


class EvaluateTest(unittest.TestCase):
    def test_a_product_with_a_guard_and_padding(self):
        a = np.arange(5.0)
        y = _run("input A: f32[5]\n"
                 "output Y[i: 5] = sum(r: 3 where 0 <= i + r - 1 < 5) A[i + r - 1] * 2.0", A=a)["Y"]
        self.assertEqual(y.value.tolist(), [2, 6, 12, 18, 14])
        self.assertEqual(y.error.tolist(), [0] * 5)

    def test_integer_constants_are_exact(self):
        y = _run("input A: i64[1]\noutput Y[i: 1] = A[i] + 9007199254740993", A=np.array([0]))["Y"]
        self.assertEqual(y.value.tolist(), [9007199254740993])

    def test_the_lowest_index_wins_and_nothing_is_the_neutral_element(self):
        out = _run("input A: i64[2, 4]\n"
                   "output (V, P)[i: 2] = argmin(k: 4 where 0 <= i + k - 1 < 3)"
                   " (A[i, k], index(k))\n"
                   "output N[i: 2] = min(k: 4 where 0 <= k + 9 < 3) A[i, k]",
                   A=np.array([[0, 5, 5, 7], [3, 2, 2, 1]]))
        self.assertEqual(out["V"].value.tolist(), [5, 2])
        self.assertEqual(out["P"].value.tolist(), [1, 1])
        self.assertEqual(out["N"].value.tolist(), [2**63 - 1] * 2)

    def test_operators_bind_as_the_grammar_says(self):
        out = _run("input A: i32[1]\n"
                   "output X[i: 1] = -A[i] * 2 - 3 * (A[i] + 1) / 2\n"
                   "output B[i: 1] = not (A[i] < 4) or A[i] == 5 and A[i] <= 4\n"
                   "output S[i: 1] = A[i] + 1 << 2 >> 1 - 2 + A[i]\n"
                   "output P[i: 1] = pow(floor(f32(A[i]) * 0.5), 3.0)",
                   A=np.array([5], np.int32))
        self.assertEqual(out["S"].value.tolist(), [(5 + 1 << 2) >> 4])
        self.assertEqual(out["P"].value.tolist(), [8])
        self.assertEqual(out["X"].value.tolist(), [-10 - 9])
        self.assertEqual(out["B"].value.tolist(), [True])

    def test_online_softmax_is_a_maximum_and_a_sum(self):
        x = np.random.default_rng(1).standard_normal((3, 50)).astype(np.float32).astype(float)
        out = _run("input X: f32[3, 50]\n"
                   "output (M, S)[i: 3] = online_softmax(k: 50) (X[i, k], 1.0)", X=x)
        self.assertTrue((out["M"].value == x.max(1)).all())
        np.testing.assert_allclose(out["S"].value, np.exp(x - x.max(1, keepdims=True)).sum(1))
        self.assertTrue((out["S"].error < 1e-5 * out["S"].value).all())


if __name__ == "__main__":
    unittest.main()
