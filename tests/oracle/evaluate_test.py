import unittest

import numpy as np

import inputs
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

    def test_a_guarded_value_is_the_other_one_where_a_guard_fails(self):
        out = _run("input A: f32[3]\n"
                   "input B: f32[4]\n"
                   "output P[i: 5] = (A[i - 1] where 0 <= i - 1 < 3 else 9.0) * 2.0\n"
                   "output J[i: 7] = (A[i] where i < 3 else B[i - 3])\n"
                   "output N[i: 4] = ((A[2 - i] where i <= 2 else -1.0) where i == i / 2 * 2 else"
                   " B[i - 1])\n"
                   "output W[i: 4] = (1.0 where i % 2 == 1, 2 < i else 0.0)",
                   A=np.array([1.0, 2.0, 3.0]), B=np.array([4.0, 5.0, 6.0, np.nan]))
        self.assertEqual(out["P"].value.tolist(), [18, 2, 4, 6, 18])
        self.assertEqual(out["J"].value[:6].tolist(), [1, 2, 3, 4, 5, 6])
        self.assertEqual(out["N"].value.tolist(), [3, 4, 1, 6])
        self.assertEqual(out["W"].value.tolist(), [0, 0, 0, 1])
        self.assertFalse(out["N"].error.any())

    def test_a_guarded_value_has_the_error_of_the_value_that_is_chosen(self):
        y = _run("input A: f32[2]\n"
                 "output Y[i: 2] = (exp(A[i]) where i < 1 else A[i])", A=np.array([0.3, 0.3]))["Y"]
        self.assertEqual((y.error > 0).tolist(), [True, False])

    def test_guards_compare_indices(self):
        y = _run("input A: i32[3, 3]\n"
                 "output L[i: 3] = sum(k: 3 where k < i) A[i, k]\n"
                 "output E[i: 3] = sum(k: 3 where k == 2 - i, 0 <= k) A[i, k]",
                 A=np.arange(9, dtype=np.int32).reshape(3, 3))
        self.assertEqual(y["L"].value.tolist(), [0, 3, 13])
        self.assertEqual(y["E"].value.tolist(), [2, 4, 6])

    def test_computed_indices_are_clamped(self):
        table = np.arange(12.0).reshape(4, 3)
        out = _run("input T: f32[4, 3]\n"
                   "input I: i64[5]\n"
                   "input S: i32[2] < 2\n"
                   "output R[i: 5, j: 3] = T[at(I[i]), 2 - j]\n"
                   "output C[i: 4] = T[i, at(index(i) * 2 - 1)]\n"
                   "output N[i: 2] = T[at(I[at(S[i])] - 1), 0]\n"
                   "output U[i: 5] = sum(k: 3) T[at(I[i]), k]",
                   T=table, I=np.array([2, -2**63, 2**63 - 1, 0, 3]), S=np.array([0, 1], np.int32))
        rows = [2, 0, 3, 0, 3]
        self.assertEqual(out["R"].value.tolist(), table[rows, ::-1].tolist())
        self.assertEqual(out["C"].value.tolist(), [0, 4, 8, 11])
        # -2^63 - 1 wraps.
        self.assertEqual(out["N"].value.tolist(), [3, 9])
        self.assertEqual(out["U"].value.tolist(), table.sum(1)[rows].tolist())

    def test_any_element_is_correct_at_an_index_that_rounding_decides(self):
        y = _run("input T: f32[3]\n"
                 "input A: f32[2]\n"
                 "output Y[i: 2] = T[at(i32(A[i] * 3.0))]",
                 T=np.array([1.0, 2.0, 3.0]), A=np.array([float(np.float32(1 / 3)), 0.25]))["Y"]
        self.assertEqual(np.isinf(y.error).tolist(), [True, False])

    def test_inputs_of_indices_are_below_their_bound(self):
        text = "workload w\ninput I: i32[900] < 7 constant\noutput Y[i: 900] = I[i]"
        (tensor,) = parse(text).inputs
        drawn = inputs.draw("any", tensor.dtype, tensor.shape, 1, tensor.name, tensor.bound)
        self.assertEqual(drawn.dtype, np.int32)
        self.assertEqual(sorted(set(drawn.tolist())), list(range(7)))


if __name__ == "__main__":
    unittest.main()
