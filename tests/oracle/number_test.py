import unittest

import numpy as np

from number import Number, contract
from policy import SLACK


def _f32(values):
    return Number("f32", np.asarray(values, np.float32).astype(np.float64))


class BoundsTest(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)

    def test_a_sum_in_f32_stays_within_a_bound_that_says_something(self):
        terms = self.rng.standard_normal((20, 3000)).astype(np.float32)
        exact = _f32(terms).sum((1,))
        total = np.zeros(20, np.float32)
        for k in range(terms.shape[1]):
            total = total + terms[:, k]
        error = np.abs(total.astype(np.float64) - exact.value)
        self.assertTrue((error <= SLACK * exact.error).all())
        self.assertTrue((error > 0).any())
        # Partial sums in bf16 exceed the bound.
        self.assertTrue((exact.error < 2.0**-8 * np.sqrt(3000)).all())

    def test_whole_numbers_have_no_error(self):
        a = _f32(self.rng.integers(-4, 5, (7, 300)))
        b = _f32(self.rng.integers(-4, 5, (300, 9)))
        product = contract("mk,kn->mn", a, b)
        self.assertEqual(np.max(product.error), 0)
        self.assertTrue((product.value == a.value @ b.value).all())

    def test_what_narrow_types_store_may_be_rounded_or_not(self):
        third = (Number.constant("bf16", 1, 1) / Number.constant("bf16", 3, 1)).stored()
        self.assertGreaterEqual(third.error[0], abs(0.333984375 - 1 / 3))
        self.assertLess(third.error[0], 0.002)

    def test_comparisons_that_rounding_may_turn_are_unsure(self):
        near = Number("f32", np.array([1.0, 1.0]), np.array([1e-6, 0.0]))
        less = near.less(Number("f32", np.array([1.0 + 1e-7, 1.0 + 1e-7])))
        self.assertEqual(less.unsure.tolist(), [True, False])
        chosen = less.select(Number.constant("f32", 5, 1), Number.constant("f32", 2, 1))
        self.assertEqual(chosen.error.tolist(), [3.0, 0.0])

    def test_integers_divide_towards_zero_and_wrap(self):
        a = Number("i32", np.array([7, -7, 7, -7, -2**31, 5, 2**31 - 1], np.int32))
        b = Number("i32", np.array([2, 2, -2, -2, -1, 0, 1], np.int32))
        self.assertEqual((a / b).value.tolist(), [3, -3, -3, 3, -2**31, 0, 2**31 - 1])
        self.assertEqual((a + b).value.tolist()[-1], -2**31)


if __name__ == "__main__":
    unittest.main()
