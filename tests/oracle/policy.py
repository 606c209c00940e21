"""The accepted results where mathematics leaves a choice. All such decisions are made here.

Most of them are documented for users in common/operator/README.md, "Special values".

  question                                 accepted answer
  NaN in max(a, b) and min(a, b)           max is b where a < b, else a, and min is b where b < a,
                                           else a: max(NaN, b) is NaN, max(a, NaN) is a
  relu of NaN, also at the end of others   NaN, as in NumPy and ONNX Runtime
  NaN in reduce_max, max_pool2d, and in    is ignored, as in NumPy's fmax.reduce. (ONNX does not
  reductions by max and min                define it, and ONNX Runtime gives NaN only if it comes
                                           first.) If all are NaN: the neutral element
  NaN in argmax, argmin                    is ignored, as in NumPy's nanargmax. If all are NaN: the
                                           neutral element, with index -1
  NaN in operators of networks             as ONNX's reference and ONNX Runtime where both agree:
                                           Max, Min and Clip give NaN if any input is NaN, and TopK
                                           counts it as the largest number. ArgMax and ArgMin count
                                           it as an infinity. Maxima over elements ignore it
  padding, and absent initial states of    add nothing, even if the weights are infinite or NaN
  recurrent layers
  range of zeros in DynamicQuantizeLinear  1, as in ONNX's reference; ONNX Runtime's scale is 1
  Slice that begins before the tensor,     begins with the first element, as in ONNX's text and ONNX
  with a negative step                     Runtime; ONNX's reference gives no element
  ties of argmax, argmin                   the lowest index
  +0 and -0                                are equal
  infinities                               as in IEEE 754
  a maximum of no terms                    -infinity, or the smallest integer; of a minimum: the
                                           reverse
  integers                                 wrap at each operation; division truncates and gives 0 if
                                           the divisor is 0
  float to integer                         truncates and wraps; NaN and infinities give 0
  shifts                                   of integers, modulo the width of the type; a count that is
                                           negative or at least the width shifts every bit out: 0,
                                           or -1 for a negative number to the right
  round                                    of a tie: the even number, as in NumPy and ONNX Runtime
  pow                                      as in C, NumPy and ONNX Runtime
  denormals                                are not flushed to zero
  short floats                             are computed in f32 and rounded when they are stored. In
                                           an operator with such a dtype or acc, each
                                           intermediate result may be rounded, but sums stay in f32
  gelu, silu, sigmoid, tanh, erf           have a small relative error everywhere, also where gelu's
                                           1 + erf(x / sqrt 2) would cancel; there, ONNX Runtime
                                           and PyTorch are accurate only to u * |x|. gelu may lose
                                           digits where the distribution function is denormal
  layer_norm of a row with a large offset  the offset costs no digits
  winograd_conv2d                          the error is relative to the magnitudes of a tile
  a text with cancellation                 is computed as written
  a job with tolerance t                   sums may have an additional error of t * sum |t|
"""

# A sum of K terms in arithmetic with unit roundoff u:
#   |error| <= SUM_CONSTANT * u * sqrt(K) * sum|t|
# The error of K independent roundings grows with sqrt(K). With the factor 4, a correct kernel
# almost never exceeds the bound.
SUM_CONSTANT = 4.0

# The error of an elementary function in unit roundoffs: Hone's functions promise at most 2.5 ulp,
# and an ulp is at most two unit roundoffs.
ELEMENTARY_ROUNDINGS = 5.0

# Error bounds are first-order; the terms of higher order are far smaller than this factor.
SLACK = 2.0

INTEGER_DIVISION_BY_ZERO = 0
