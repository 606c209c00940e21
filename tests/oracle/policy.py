"""What counts as right where mathematics leaves a choice. The one place for such decisions.

The library promises most of them to its users: common/operator/README.md, "Special values".

  question                                 answer that the oracle accepts
  NaN in max(a, b) and min(a, b)           max is b where a < b, else a, and min is b where b < a,
                                           else a: max(NaN, b) is NaN, max(a, NaN) is a
  relu and what ends with one, of NaN      NaN, as NumPy and ONNX Runtime have it
  NaN in reduce_max, max_pool2d, and in    is left out, as NumPy's fmax.reduce does. ONNX says
  reductions by max and min                nothing, and ONNX Runtime gives NaN only where it comes
                                           first. Of NaN alone: the neutral element
  NaN in argmax, argmin                    is left out, as NumPy's nanargmax does. Of NaN alone: the
                                           neutral element, at -1
  ties of argmax, argmin                   the lowest index
  +0 and -0                                are equal
  infinities                               as IEEE 754 says
  a maximum of no terms                    -infinity, or the least integer; of a minimum the reverse
  integers                                 wrap at each operation; division drops the fraction and
                                           gives 0 where the divisor is 0
  float to integer                         drops the fraction and wraps; NaN and infinities give 0
  denormals                                are computed with, not flushed to zero
  f16 and bf16                             are computed in f32, and rounded where they are stored.
                                           In an operator with dtype or acc f16 or bf16 each
                                           intermediate may be rounded, but sums stay in f32
  gelu, silu, sigmoid, tanh, erf           keep their relative error everywhere, also where gelu's
                                           1 + erf(x / sqrt 2) would cancel; there ONNX Runtime and
                                           PyTorch are right to u * |x| only. gelu may lose digits
                                           where the distribution function is a denormal
  layer_norm of a row with a large offset  the offset costs no digits
  winograd_conv2d                          its error is relative to the magnitudes of a tile
  a text that cancels                      is computed as it is written
  a job with a tolerance t                 sums may lose t * sum |t| more
"""

# A sum of K terms in arithmetic with unit roundoff u:
#   |error| <= SUM_CONSTANT * u * sqrt(K) * sum|t|
# The error of K independent roundings grows with sqrt(K); 4 makes an excess all but impossible.
SUM_CONSTANT = 4.0

# Roundings that an elementary function may cost: 2.5 ulp are the most that Hone's promise, and an
# ulp is up to two roundoffs.
ELEMENTARY_ROUNDINGS = 5.0

# Bounds are first-order; what they leave out is far below this factor.
SLACK = 2.0

INTEGER_DIVISION_BY_ZERO = 0
