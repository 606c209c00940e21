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

    def test_shifts_by_any_count(self):
        a = Number("i8", np.array([3, -128, 100, 127, -5, 5, -1], np.int8))
        n = Number("i8", np.array([6, 7, 0, 8, 100, -1, -128], np.int8))
        self.assertEqual(a.shifted_left(n).value.tolist(), [-64, 0, 100, 0, 0, 0, 0])
        self.assertEqual(a.shifted_right(n).value.tolist(), [0, -1, 100, 0, -1, 0, -1])
        b = Number("u8", np.array([255, 255, 129], np.uint8))
        n = Number("u8", np.array([1, 255, 7], np.uint8))
        self.assertEqual(b.shifted_left(n).value.tolist(), [254, 0, 128])
        self.assertEqual(b.shifted_right(n).value.tolist(), [127, 0, 1])
        wide = Number("i64", np.array([-2**63, 5]))
        n = Number("i64", np.array([63, 64]))
        self.assertEqual(wide.shifted_right(n).value.tolist(), [-1, 0])
        self.assertEqual(wide.shifted_left(n).value.tolist(), [0, 0])

    def test_roundings_jump_where_an_error_reaches_a_tie(self):
        x = Number("f32", np.array([2.5, 2.5, 2.4, -0.5]), np.array([0.0, 1e-6, 1e-6, 1e-6]))
        rounded = x.whole("round")
        self.assertEqual(rounded.value.tolist(), [2, 2, 2, 0])
        self.assertEqual(rounded.error.tolist(), [0, 1, 0, 1])

    def test_powers_of_inexact_bases(self):
        x = Number("f64", np.array([0.0, -2.0, 4.0, 0.1]), np.array([0.25, 0.5, 0.5, 0.2]))
        squares = x.power(Number.constant("f64", 2, 1))
        self.assertTrue((squares.error >= [0.0625, 2.25, 4.25, 0.08]).all())
        self.assertTrue((squares.error <= [0.0626, 2.26, 4.26, 0.09]).all())
        roots = x.power(Number.constant("f64", 0.5, 1))
        self.assertEqual(np.isinf(roots.error).tolist(), [True, True, False, True])


if __name__ == "__main__":
    unittest.main()
