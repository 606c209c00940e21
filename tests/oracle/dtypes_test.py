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

    def test_floats_become_integers_modulo_their_range(self):
        values = np.array([-1.9, 3e9, -3e9, 300.0, np.nan, np.inf, 2.0**63, 1e20])
        self.assertEqual(dtypes.floats_to_integers("i64", values).tolist(),
                         [int(v) % 2**64 - (2**64 if int(v) % 2**64 >= 2**63 else 0)
                          if np.isfinite(v) else 0 for v in values.tolist()])
        self.assertEqual(dtypes.floats_to_integers("u8", values).tolist()[:4],
                         [255, 3000000000 % 256, -3000000000 % 256, 44])


if __name__ == "__main__":
    unittest.main()
