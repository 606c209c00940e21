import unittest

import numpy as np

import operators
from number import Number


def _numbers(**arrays):
    return {name: Number("f64", array) for name, array in arrays.items()}


class OperatorsTest(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def test_winograd_of_transformed_weights_is_the_convolution(self):
        x, w = self.rng.standard_normal((2, 9, 11, 3)), self.rng.standard_normal((3, 3, 3, 4))
        u = np.einsum("xi,ijco,yj->xyco", operators.WINOGRAD_G, w, operators.WINOGRAD_G)
        (direct,) = operators.define("conv2d n=2 h=9 w=11 ci=3 co=4 k=3 dtype=f64",
                                     _numbers(X=x, W=w))
        (fast,) = operators.define("winograd_conv2d n=2 h=9 w=11 ci=3 co=4 dtype=f64",
                                   _numbers(X=x, U=u))
        np.testing.assert_allclose(fast.value, direct.value, atol=1e-10)

    def test_the_transposed_convolution_is_the_adjoint(self):
        w = self.rng.standard_normal((4, 3, 3, 5))
        y = self.rng.standard_normal((1, 6, 7, 3))
        (up,) = operators.define(
            "conv2d_transpose n=1 h=6 w=7 ci=3 co=5 k=4 kh=4 kw=3 sh=2 sw=3 ph=1 pw=2 dtype=f64",
            _numbers(X=y, W=w))
        _, height, width, _ = up.value.shape
        x = self.rng.standard_normal(up.value.shape)
        (down,) = operators.define(
            f"conv2d n=1 h={height} w={width} ci=5 co=3 k=4 kh=4 kw=3 sh=2 sw=3 ph=1 pw=2 "
            "dtype=f64", _numbers(X=x, W=w.transpose(0, 1, 3, 2)))
        self.assertAlmostEqual((down.value * y).sum(), (x * up.value).sum())

    def test_a_mean_leaves_padding_out_where_it_does_not_count(self):
        x = np.ones((1, 3, 3, 1))
        words = "avg_pool2d n=1 h=3 w=3 c=1 k=2 s=1 p=1 dtype=f64 pad_counts="
        (inside,) = operators.define(words + "0", _numbers(X=x))
        (all_taps,) = operators.define(words + "1", _numbers(X=x))
        self.assertTrue((inside.value == 1).all())
        self.assertEqual(all_taps.value[0, 0, :, 0].tolist(), [0.25, 0.5, 0.5, 0.25])

    def test_gelu_keeps_its_relative_error(self):
        (y,) = operators.define("gelu m=1 n=2 dtype=f32", {
            "X": Number("f32", np.array([[-5.0, -12.0]]))})
        # Values of the normal distribution, to 16 digits.
        np.testing.assert_allclose(y.value[0], [-5 * 2.866515718791939e-07,
                                                -12 * 1.776482112077679e-33], rtol=1e-14)
        self.assertTrue((y.error < 1e-6 * np.abs(y.value)).all())

    def test_maxima_leave_nan_out_and_relu_keeps_it(self):
        x = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 2.0], [np.nan] * 3])
        best, place = operators.define("argmax m=3 n=3 dtype=f64", _numbers(X=x))
        self.assertEqual(best.value.tolist(), [3, 2, -np.inf])
        self.assertEqual(place.value.tolist(), [2, 1, -1])
        (kept,) = operators.define("relu m=3 n=3 dtype=f64", _numbers(X=x))
        self.assertTrue((np.isnan(kept.value) == np.isnan(x)).all())

    def test_an_offset_costs_layer_norm_nothing(self):
        x = (1e4 + np.random.default_rng(2).standard_normal((2, 300))).astype(np.float32)
        numbers = {"X": x, "Gamma": np.ones(300), "Beta": np.zeros(300)}
        (y,) = operators.define("layer_norm m=2 n=300", {
            name: Number("f32", np.asarray(array, np.float64)) for name, array in numbers.items()})
        x = x.astype(np.float64)
        direct = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(y.value, direct, atol=1e-9)
        self.assertTrue((y.error < 1e-4).all())  # u * 1e4 would be six times as large


if __name__ == "__main__":
    unittest.main()
