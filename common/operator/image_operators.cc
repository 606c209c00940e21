#include "common/operator/library.h"

namespace hone::op {

const char kImageOperators[] = R"(
key n: batch
key h: input height
key w: input width
key d: input depth
key l: input length
key c: channels
key ci: input channels
key co: output channels
key k: kernel extent in every dimension
key s = 1: stride in every dimension
key p = 0 min 0: padding on each side in every dimension
key dil = 1: dilation: the distance between neighbouring taps
key groups = 1: groups of channels: output channel c reads the ci/groups input channels of its group
key kd = k: kernel extent along d
key kh = k: kernel extent along h
key kw = k: kernel extent along w
key sd = s: stride along d
key sh = s: stride along h
key sw = s: stride along w
key pd = p min 0: padding on each side along d
key ph = p min 0: padding on each side along h
key pw = p min 0: padding on each side along w

# Windows that slide along l, h, w or d: their number; the position that a tap reads; and the guard that excludes
# padding from the reduction, which lowering turns into loop bounds. The taps are r for h, s for w (as in the
# literature) and t for d. The padding may exceed the kernel; windows entirely in the padding have no taps.
let ol = {(l + 2*p - (k - 1)*dil - 1)/s + 1}
let oh = {(h + 2*ph - (kh - 1)*dil - 1)/sh + 1}
let ow = {(w + 2*pw - (kw - 1)*dil - 1)/sw + 1}
let od = {(d + 2*pd - (kd - 1)*dil - 1)/sd + 1}
let at_l = {s}*l + {dil}*r - {p}
let at_h = {sh}*h + {dil}*r - {ph}
let at_w = {sw}*w + {dil}*s - {pw}
let at_d = {sd}*d + {dil}*t - {pd}
let in_l = {p ? 0 <= {at_l} < {l}}
let in_h = {ph ? 0 <= {at_h} < {h}}
let in_w = {pw ? 0 <= {at_w} < {w}}
let in_d = {pd ? 0 <= {at_d} < {d}}
let fits_hw = {((kh - 1)*dil < h + 2*ph) * ((kw - 1)*dil < w + 2*pw)}
let not_fit(kernel, padded) =
  a kernel of {kernel}{1 < dil ?  with dilation {dil}} does not fit into the padded input of {padded}
let not_fit_hw = {not_fit({kh}x{kw}, {h + 2*ph}x{w + 2*pw})}

# The group is computed from the output channel, so tensors keep their dimensions. A tile of output channels that
# divides co/groups reads one group.
let channel = ci + co / {co/groups} * {ci/groups}
let undivided(channels) = {groups} groups do not divide {channels} channels

operator conv1d: Y[n, ol, co] = X[n, l, ci] * W[k, ci/groups, co]; ol = (l + 2p - (k-1)*dil - 1) / s + 1
keys n l ci co
key k: kernel extent
key s = 1: stride
key p = 0 min 0: padding on each side
keys dil groups
check (k - 1)*dil < l + 2*p: {not_fit({k}, {l + 2*p})}
check ci % groups == 0: {undivided({ci} input)}
check co % groups == 0: {undivided({co} output)}
input X: {dtype}[{n}, {l}, {ci}]
input W: {dtype}[{k}, {ci/groups}, {co}] constant
output Y[n: {n}, l: {ol}, co: {co}] =
  sum(r: {k}, ci: {ci/groups} where {in_l}) X[n, {at_l}, {channel}] * W[r, ci, co]

operator conv2d: Y[n, oh, ow, co] = X[n, h, w, ci] * W[kh, kw, ci/groups, co]; oh = (h + 2ph - (kh-1)*dil - 1) / sh + 1
keys n h w ci co k s p dil groups kh kw sh sw ph pw
check fits_hw: {not_fit_hw}
check ci % groups == 0: {undivided({ci} input)}
check co % groups == 0: {undivided({co} output)}
input X: {dtype}[{n}, {h}, {w}, {ci}]
input W: {dtype}[{kh}, {kw}, {ci/groups}, {co}] constant
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  sum(r: {kh}, s: {kw}, ci: {ci/groups} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, {channel}] * W[r, s, ci, co]

operator conv2d_nchw: conv2d with channels first: Y[n, co, oh, ow] = X[n, ci, h, w] * W[co, ci/groups, kh, kw]
like conv2d
input X: {dtype}[{n}, {ci}, {h}, {w}]
input W: {dtype}[{co}, {ci/groups}, {kh}, {kw}] constant
output Y[n: {n}, co: {co}, h: {oh}, w: {ow}] =
  sum(ci: {ci/groups}, r: {kh}, s: {kw} where {in_h}, {in_w}) X[n, {channel}, {at_h}, {at_w}] * W[co, ci, r, s]

# Inference only: the four parameters per channel of the batch normalization are folded into two.
operator conv2d_bn_relu: Y = max((conv2d(X, W) + Bias) * Scale + Offset, 0), per output channel
like conv2d
input X: {dtype}[{n}, {h}, {w}, {ci}]
input W: {dtype}[{kh}, {kw}, {ci/groups}, {co}] constant
input Bias: {dtype}[{co}] constant
input Scale: {dtype}[{co}] constant
input Offset: {dtype}[{co}] constant
Conv[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  sum(r: {kh}, s: {kw}, ci: {ci/groups} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, {channel}] * W[r, s, ci, co]
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] = max((Conv[n, h, w, co] + Bias[co]) * Scale[co] + Offset[co], 0)

operator quantized_conv2d fixed: conv2d of u8 images and i8 weights, summed in i32; padding counts as 0
like conv2d
input X: u8[{n}, {h}, {w}, {ci}]
input W: i8[{kh}, {kw}, {ci/groups}, {co}] constant
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  sum(r: {kh}, s: {kw}, ci: {ci/groups} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, {channel}] * W[r, s, ci, co]

operator conv3d: Y[n, od, oh, ow, co] = X[n, d, h, w, ci] * W[kd, kh, kw, ci/groups, co]; od as oh of conv2d
keys n d h w ci co k s p dil groups kd kh kw sd sh sw pd ph pw
check ((kd - 1)*dil < d + 2*pd) * fits_hw: {not_fit({kd}x{kh}x{kw}, {d + 2*pd}x{h + 2*ph}x{w + 2*pw})}
check ci % groups == 0: {undivided({ci} input)}
check co % groups == 0: {undivided({co} output)}
input X: {dtype}[{n}, {d}, {h}, {w}, {ci}]
input W: {dtype}[{kd}, {kh}, {kw}, {ci/groups}, {co}] constant
output Y[n: {n}, d: {od}, h: {oh}, w: {ow}, co: {co}] =
  sum(t: {kd}, r: {kh}, s: {kw}, ci: {ci/groups} where {in_d}, {in_h}, {in_w})
  X[n, {at_d}, {at_h}, {at_w}, {channel}] * W[t, r, s, ci, co]

operator depthwise_conv2d: Y[n, oh, ow, c] = X[n, h, w, c] * W[kh, kw, c], each channel separately; oh as of conv2d
keys n h w c k s p dil kh kw sh sw ph pw
check fits_hw: {not_fit_hw}
input X: {dtype}[{n}, {h}, {w}, {c}]
input W: {dtype}[{kh}, {kw}, {c}] constant
output Y[n: {n}, h: {oh}, w: {ow}, c: {c}] =
  sum(r: {kh}, s: {kw} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, c] * W[r, s, c]

# The elements are cap x cap matrices, multiplied where conv2d multiplies numbers (Hinton et al., 2018, in Ansor's
# form).
operator capsule_conv2d: conv2d of matrices:
  Y[n, oh, ow, i, j, co] = X[n, h, w, i, l, ci] * W[kh, kw, l, j, ci, co]; oh and ow as in conv2d
keys n h w ci co k s p
key cap = 4: rows and columns of the matrix at each point
keys kh kw sh sw ph pw
let dil = 1
check fits_hw: {not_fit_hw}
input X: {dtype}[{n}, {h}, {w}, {cap}, {cap}, {ci}]
input W: {dtype}[{kh}, {kw}, {cap}, {cap}, {ci}, {co}] constant
output Y[n: {n}, h: {oh}, w: {ow}, i: {cap}, j: {cap}, co: {co}] =
  sum(r: {kh}, s: {kw}, k: {cap}, ci: {ci} where {in_h}, {in_w})
  X[n, {at_h}, {at_w}, i, k, ci] * W[r, s, k, j, ci, co]

# One dimension is y[o] = sum of x[i] * w[r] over i*s + r - p = o. Only every s-th tap reads an input. A sum over all
# taps with a guard (o + p - r) mod s = 0 would do s times the work, or need guards that loop bounds cannot express.
# Instead, the output is divided into phases, o = s*q + a, with the taps r = (a + p) mod s + s*t. The input is then
# i = q + (a + p) / s - t: everything is affine in the loops over q and t, and no tap is wasted. The weights depend on
# the phase but not on q, so q forms the rows of a matrix product. The last step over taps, and over outputs, may be
# partial. A second stage interleaves the phases; a schedule can fuse it.
operator conv2d_transpose: Y[n, h*sh + r - ph, w*sw + s - pw, co] += X[n, h, w, ci] * W[r, s, ci, co];
  oh = (h-1)*sh - 2ph + kh
keys n h w ci co k s p kh kw sh sw ph pw
let oh = {(h - 1)*sh - 2*ph + kh}
let ow = {(w - 1)*sw - 2*pw + kw}
let too_large(extent, stride) =
  an output with {extent} strides of {stride} has more than {max_elements} elements
let nothing(padding, dimension, outputs) =
  padding {padding} leaves nothing of the output along {dimension} ({outputs} without padding)
check (h - 1)*sh <= max_elements: {too_large({h}, {sh})}
check 0 < oh: {nothing({ph}, h, {oh + 2*ph})}
check (w - 1)*sw <= max_elements: {too_large({w}, {sw})}
check 0 < ow: {nothing({pw}, w, {ow + 2*pw})}
input X: {dtype}[{n}, {h}, {w}, {ci}]
input W: {dtype}[{kh}, {kw}, {ci}, {co}] constant
let row = qh + (ah + {ph}) / {sh} - th
let column = qw + (aw + {pw}) / {sw} - tw
let tap_h = (ah + {ph}) % {sh} + {sh}*th
let tap_w = (aw + {pw}) % {sw} + {sw}*tw
let in_h = 0 <= {row} < {h}, {kh % sh ? 0 <= {tap_h} < {kh}}, {oh % sh ? 0 <= {sh}*qh + ah < {oh}}
let in_w = 0 <= {column} < {w}, {kw % sw ? 0 <= {tap_w} < {kw}}, {ow % sw ? 0 <= {sw}*qw + aw < {ow}}
Phases[n: {n}, qh: {(oh + sh - 1)/sh}, ah: {sh}, qw: {(ow + sw - 1)/sw}, aw: {sw}, co: {co}] =
  sum(th: {(kh + sh - 1)/sh}, tw: {(kw + sw - 1)/sw}, ci: {ci} where {in_h}, {in_w})
  X[n, {row}, {column}, ci] * W[{tap_h}, {tap_w}, ci, co]
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] = Phases[n, h / {sh}, h % {sh}, w / {sw}, w % {sw}, co]

# Winograd's F(4x4, 3x3) (Lavin and Gray, 2016; interpolation points 0, 1, -1, 2, -2): a 6 x 6 tile of the input gives
# 4 x 4 outputs with 36 multiplications instead of 144. One dimension is transformed at a time. The tiles of all
# images form one axis: the rows of the 36 matrix products. Each row of a transform is chosen by its index, so that
# unrolled code has no select and no multiplication by zero. Where the last tiles extend past the image, the sum over
# one element has no terms and gives 0.
operator winograd_conv2d floats:
  conv2d with k=3, s=1, p=0 by F(4,3), with weights that are already transformed: U[:, :, ci, co] =
  G W[:, :, ci, co] G^T, G = [1/4 0 0; -1/6 -1/6 -1/6; -1/6 1/6 -1/6; 1/24 1/12 1/6; 1/24 -1/12 1/6; 0 0 1]; oh = h - 2
note The error of an output is relative to the largest magnitude in its tile: 6 x 6 inputs and 4 x 4 outputs, all input
  channels. An element whose own 3 x 3 window is much smaller than the rest of its tile has the error of the tile: with
  inputs of 1 beside inputs of 1e12 it may be wrong in every digit.
keys n h w ci co
check (3 <= h) * (3 <= w): a kernel of 3x3 does not fit into the input of {h}x{w}
input X: {dtype}[{n}, {h}, {w}, {ci}]
input U: {dtype}[6, 6, {ci}, {co}] constant
let oh = {h - 2}
let ow = {w - 2}
let th = {(oh + 3)/4}
let tw = {(ow + 3)/4}
let tiles = {n*th*tw}
let pads = {(h < 4*th + 2) + (w < 4*tw + 2)}
let image = {pads ? Padded}{pads == 0 ? X}
let input(row) = select(index({row}) == 0, {d(0)} * 4 - {d(2)} * 5 + {d(4)},
  select(index({row}) == 1, {d(3)} + {d(4)} - ({d(1)} + {d(2)}) * 4,
  select(index({row}) == 2, {d(4)} - {d(3)} + ({d(1)} - {d(2)}) * 4,
  select(index({row}) == 3, {d(4)} - {d(2)} + ({d(3)} - {d(1)}) * 2,
  select(index({row}) == 4, {d(4)} - {d(2)} + ({d(1)} - {d(3)}) * 2, {d(1)} * 4 - {d(3)} * 5 + {d(5)})))))
let output(row) = select(index({row}) == 0, {d(0)} + {d(1)} + {d(2)} + {d(3)} + {d(4)},
  select(index({row}) == 1, {d(1)} - {d(2)} + ({d(3)} - {d(4)}) * 2,
  select(index({row}) == 2, {d(1)} + {d(2)} + ({d(3)} + {d(4)}) * 4,
  {d(1)} - {d(2)} + ({d(3)} - {d(4)}) * 8 + {d(5)})))
{pads ? Padded[n: {n}, h: {4*th + 2}, w: {4*tw + 2}, ci: {ci}] =
  sum(one: 1 where 0 <= h < {h}, 0 <= w < {w}) X[n, h, w, ci]}
let d(i) = {image}[p / {th*tw}, p / {tw} % {th} * 4 + {i}, p % {tw} * 4 + s, ci]
RowsIn[r: 6, s: 6, p: {tiles}, ci: {ci}] = {input(r)}
let d(i) = RowsIn[r, {i}, p, ci]
V[r: 6, s: 6, p: {tiles}, ci: {ci}] = {input(s)}
M[r: 6, s: 6, p: {tiles}, co: {co}] = sum(ci: {ci}) V[r, s, p, ci] * U[r, s, ci, co]
let d(i) = M[{i}, s, p, co]
RowsOut[i: 4, s: 6, p: {tiles}, co: {co}] = {output(i)}
let d(i) = RowsOut[h % 4, {i}, w / 4 + h / 4 * {tw} + {th*tw}*n, co]
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] = {output(w % 4)}

# Each window must contain an element of the image, because a maximum or mean of no elements is undefined; ONNX
# Runtime has the same rule.
operator max_pool2d: Y[n, oh, ow, c] = maximum of X over kh x kw windows; oh = (h + 2ph - kh) / sh + 1
note NaN elements are ignored, as numpy.fmax does; Y is -inf where all elements of a window are NaN. Padding is ignored.
  It must be smaller than the kernel, as ONNX Runtime requires.
keys n h w c k
key s = k: stride in every dimension
keys p kh kw sh sw ph pw
let dil = 1
check fits_hw: {not_fit_hw}
check ph < kh: padding {ph} must be smaller than the kernel ({kh})
check pw < kw: padding {pw} must be smaller than the kernel ({kw})
input X: {dtype}[{n}, {h}, {w}, {c}]
output Y[n: {n}, h: {oh}, w: {ow}, c: {c}] = max(r: {kh}, s: {kw} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, c]

# Counts the taps inside the image once for all channels.
operator avg_pool2d floats: Y[n, oh, ow, c] = mean of X over kh x kw windows; oh = (h + 2ph - kh) / sh + 1
note The padding must be smaller than the kernel, as ONNX Runtime requires.
like max_pool2d
key pad_counts = 1 min 0 max 1: 1: padding counts as zeros, 0: the mean is over the elements inside the image
input X: {dtype}[{n}, {h}, {w}, {c}]
let counted = {(pad_counts == 0)*(ph + pw)}
Sum[n: {n}, h: {oh}, w: {ow}, c: {c}] = sum(r: {kh}, s: {kw} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, c]
{counted ? Count[h: {oh}, w: {ow}] = sum(r: {kh}, s: {kw} where {in_h}, {in_w}) {acc}(1)}
output Y[n: {n}, h: {oh}, w: {ow}, c: {c}] =
  Sum[n, h, w, c] {counted ? / Count[h, w]}{counted == 0 ? * {1.0/(kh*kw)}}

operator global_avg_pool floats: Y[n, c] = mean of X[n, h, w, c] over h and w
keys n h w c
input X: {dtype}[{n}, {h}, {w}, {c}]
Sum[n: {n}, c: {c}] = sum(h: {h}, w: {w}) X[n, h, w, c]
output Y[n: {n}, c: {c}] = Sum[n, c] * {1.0/(h*w)}
)";

}  // namespace hone::op
