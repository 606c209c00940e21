"""What counts as right where mathematics leaves a choice. The one place for such decisions.

  question                                 answer that the oracle accepts
  NaN in a maximum or minimum of two       NaN; in a text workload also the other operand, because
                                           Hone's interpreter defines max and min as "the first
                                           operand where they are unordered"
  relu, add_relu of NaN                    NaN, as NumPy and ONNX Runtime have it
  NaN in reduce_max, max_pool2d, min, max  NaN (NumPy) or the extremum of the rest. ONNX says nothing,
                                           and ONNX Runtime gives NaN only where it comes first
  NaN in argmax, argmin                    the place of a NaN (NumPy: the first), or the best of the
                                           rest (ONNX Runtime: unless NaN comes first). Of NaN alone
                                           also the neutral element, -infinity at -1
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
                                           PyTorch are right to u * |x| only. A workload's text is
                                           computed as it is written, and may cancel
  a job with a tolerance t                 sums may lose t * sum |t| more
"""

# A sum of K terms in arithmetic with unit roundoff u: |error| <= SUM_CONSTANT * u * sqrt(K) * sum|t|.
# Errors of K roundings that are independent grow with sqrt(K); 4 makes an excess all but impossible.
SUM_CONSTANT = 4.0

# Roundings that an elementary function may cost: 2.5 ulp are the most that Hone's promise, and an
# ulp is up to two roundoffs.
ELEMENTARY_ROUNDINGS = 5.0

# Bounds are first-order; what they leave out is far below this factor.
SLACK = 2.0

INTEGER_DIVISION_BY_ZERO = 0
