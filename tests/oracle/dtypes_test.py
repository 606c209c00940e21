import unittest

import numpy as np

import dtypes


class RoundingTest(unittest.TestCase):
    def test_bf16_rounds_once_to_nearest_even(self):
        one, step = 1.0, 2.0**-7  # the spacing of bf16 between 1 and 2
        for value, expected in (
                (one + step / 2, one),  # a tie rounds to even
                (one + step * 1.5, one + 2 * step),
                (one + step / 2 + 2.0**-40, one + step),  # a tie if it is first rounded to f32
                (-(one + step / 2 + 2.0**-40), -(one + step)),
                (3.4e38, np.inf),
                (2.0**-134 * 1.01, 2.0**-133),
                (-0.0, 0.0)):
            self.assertEqual(dtypes.round_to("bf16", np.array([value]))[0], expected, value)
        self.assertTrue(np.isnan(dtypes.round_to("bf16", np.array([np.nan])))[0])

    def test_every_bf16_comes_back(self):
        bits = np.arange(1 << 16, dtype=np.uint16)
        values = dtypes.from_memory("bf16", bits)
        again = dtypes.to_memory("bf16", values)
        self.assertTrue(((again == bits) | np.isnan(values)).all())

    def test_float8_rounds_to_nearest_even_and_saturates(self):
        for name, pairs in (
                ("f8e4m3", ((1.0625, 1.0), (1.1875, 1.25), (1.0625 + 2.0**-40, 1.125), (449, 448),
                            (464, 448), (1e9, 448), (-np.inf, -448), (2.0**-10, 0),
                            (2.0**-10 * 1.01, 2.0**-9), (-(2.0**-7) * 1.01, -(2.0**-7)))),
                ("f8e5m2", ((1.125, 1.0), (1.375, 1.5), (1.125 + 2.0**-40, 1.25), (61440, 57344),
                            (1e9, 57344), (-np.inf, -np.inf), (2.0**-17, 0),
                            (2.0**-17 * 1.01, 2.0**-16)))):
            for value, expected in pairs:
                self.assertEqual(dtypes.round_to(name, np.array([value]))[0], expected, value)
            self.assertTrue(np.isnan(dtypes.round_to(name, np.array([np.nan])))[0])

    def test_every_float8_comes_back(self):
        bits = np.arange(256, dtype=np.uint8)
        for name, nans in (("f8e4m3", 2), ("f8e5m2", 6)):
            values = dtypes.from_memory(name, bits)
            self.assertEqual(np.isnan(values).sum(), nans)
            again = dtypes.to_memory(name, values)
            self.assertTrue(((again == bits) | np.isnan(values)).all())

    def test_floats_become_integers_modulo_their_range(self):
        values = np.array([-1.9, 3e9, -3e9, 300.0, np.nan, np.inf, 2.0**63, 1e20])
        self.assertEqual(dtypes.floats_to_integers("i64", values).tolist(),
                         [int(v) % 2**64 - (2**64 if int(v) % 2**64 >= 2**63 else 0)
                          if np.isfinite(v) else 0 for v in values.tolist()])
        self.assertEqual(dtypes.floats_to_integers("u8", values).tolist()[:4],
                         [255, 3000000000 % 256, -3000000000 % 256, 44])


if __name__ == "__main__":
    unittest.main()
