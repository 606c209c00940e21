#ifndef HONE_COMMON_SCHEDULE_REWRITE_REWRITES_H_
#define HONE_COMMON_SCHEDULE_REWRITE_REWRITES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

// The rewrites of the registry. Rewrite::apply and Rewrite::tolerance describe their contracts.
namespace hone::schedule {

// Winograd's minimal filtering F(m×m, 3×3) (Lavin and Gray, Fast Algorithms for Convolutional
// Neural Networks, 2016) for Y[n, h, w, co] = Σ X[n, h+r−p, w+s−p, ci]·W[r, s, ci, co] in f32 or
// f64, with any padding and partial tiles. m = 2 uses the points 0, ±1, ∞; m = 4 adds ±2; m = 6
// also ±1/2. With α = m + 2 and tiles t:
//   Y_d[t, i, j, ci]    the input tile, padded with zeros
//   Y_bd[t, x, j, ci]   = Bᵀ·Y_d
//   Y_v[x, y, t, ci]    = Y_bd·B
//   Y_u[x, y, ci, co]   = G·W·Gᵀ in f64, rounded once; ahead of time for constant weights
//   Y_m[x, y, t, co]    = Σ_ci Y_v·Y_u
//   Y_am[t, a, y, co]   = Aᵀ·Y_m
//   Y[n, h, w, co]      = Y_am·A
// The tolerance is relative to the largest magnitude in a tile. An output whose 3×3 window has much
// smaller values than the rest of its tile still has the error of the tile. FailedPrecondition:
// another kernel size, stride, dilation, groups, another layout or dtype.
absl::StatusOr<ir::Workload> Winograd(const ir::Workload& workload, int stage,
                                      absl::Span<const int64_t> numbers);
double WinogradTolerance(const ir::Workload& workload, int stage,
                         absl::Span<const int64_t> numbers);

// Rounds the factors of a sum of products in f32 to bf16, so that instructions for dot products of
// bf16 can compute it: Σ A·B becomes Σ f32(A_bf16)·f32(B_bf16), with all of A and B rounded once,
// ahead of time for constants. A magnitude above 3.39e38 becomes infinite. FailedPrecondition: the
// factors are not plain elements of tensors in f32.
absl::StatusOr<ir::Workload> Bf16(const ir::Workload& workload, int stage,
                                  absl::Span<const int64_t> numbers);
double Bf16Tolerance(const ir::Workload& workload, int stage, absl::Span<const int64_t> numbers);

// Gathers the windowed factor of a sum of products into a tensor with one axis for each axis that
// it depends on, and zeros where a guard fails (0·∞ counts as 0). For a convolution this is Y_p[n,
// h, w, r, s, ci], and the sum becomes a matrix product. FailedPrecondition: not a sum of products,
// or not exactly one factor whose index combines an output axis and a reduced one.
absl::StatusOr<ir::Workload> Im2col(const ir::Workload& workload, int stage,
                                    absl::Span<const int64_t> numbers);

// Copies the image that a sum reads through a window, with zeros around it, so that the window has
// no guards (0·∞ counts as 0). If the window moves by s > 1 columns of the last dimension, the copy
// has s phases of columns, Y_p[…, column % s, column / s], and neighbouring outputs read
// neighbouring elements. FailedPrecondition: not a sum, not exactly one load at an index of an
// output axis and reduced ones, or another guard.
absl::StatusOr<ir::Workload> PadImage(const ir::Workload& workload, int stage,
                                      absl::Span<const int64_t> numbers);

// Copies the image that a sum reads through a window, with zeros around it, so that rows of outputs
// are rows of a matrix for instructions on tiles. `multiple` 0: the outputs keep their axes.
// Otherwise the sums of all pixels (h, w) are the rows h·width + w of one axis, and there are a
// multiple of this number of rows. If the window moves by one pixel, `width` is that of the padded
// image Y_p:
//   Y_q[…, q, co] = Σ Y_p[…, q + r·width + s, c]·W[r, s, c, co];
//   Y[…, h, w, co] = Y_q[…, h·width + w, co].
// Otherwise it is that of the output, and Y_p[…, r, s, q, c] has the patches. `terms`: the copies
// of image and weights have a multiple of this number of channels; those that are added are 0.
// FailedPrecondition: as for PadImage; not a sum of products of an image and another tensor; the
// copy would be much larger than image and result; with a multiple also a window that does not
// slide along two neighbouring dimensions and axes, or another index that depends on the pixel; to
// add channels, the last dimension must be reduced on its own.
absl::StatusOr<ir::Workload> PixelRows(const ir::Workload& workload, int stage,
                                       absl::Span<const int64_t> numbers);

// Joins the taps of a window in a line with the few channels of the image, as of the first
// convolution of a network, to one axis of terms, whose number is a multiple of `multiple`:
//   Y[n, h, w, co] = Σ_{r, k} Y_p[n, σ·h + r, σ·channels·w + k]·Y_p1[r, k, co]
// with the padded image Y_p and the weights Y_p1, which are 0 for the terms that are added.
// Those terms read pixels right of the window. FailedPrecondition: as for PixelRows; the last
// dimensions of the image are not columns, whose taps are neighbours, and channels, or another
// index depends on them.
absl::StatusOr<ir::Workload> JoinTaps(const ir::Workload& workload, int stage,
                                      absl::Span<const int64_t> numbers);

// Divides the longest reduction axis (the first of equally long ones) into `parts` parts, reduces
// each part and then combines the results:
//   Y_part[part, …] = Σ over the part; Y[…] = Σ_part Y_part. Any reducer, including tuples.
// InvalidArgument: fewer than 2 parts, or more than the axis has terms. FailedPrecondition: the
// stage does not reduce, or a shorter last part would read outside a tensor.
absl::StatusOr<ir::Workload> SplitK(const ir::Workload& workload, int stage,
                                    absl::Span<const int64_t> numbers);

// Computes the maximum and the sum of a softmax in one pass (Milakov and Gimelshein, Online
// normalizer calculation for softmax, 2018). The stage is S = Σ exp(x − M) with M = max x over the
// same axes, possibly with element-wise stages between:
//   (M, S)[…] = online_softmax (x, 1)
// Stages that only S read are removed. FailedPrecondition: the stages do not have this form; the
// message states the difference.
absl::StatusOr<ir::Workload> OnlineSoftmax(const ir::Workload& workload, int stage,
                                           absl::Span<const int64_t> numbers);

// Gives the stage and its neighbours axes in which their indices are affine and long. An axis that
// is read in groups, such as the channels of a grouped convolution, X[c / 4 * 8 + k], becomes one
// axis of groups and one within a group. Neighbouring axes that every tensor indexes together, such
// as the pixels of a 1×1 convolution, become one axis. The dimensions of tensors, also of inputs
// and outputs, are divided and joined in the same way, so that elements keep their places in
// memory. FailedPrecondition: there is no such axis; a tensor would have too many dimensions, has
// computed indices, or elements of less than a byte.
absl::StatusOr<ir::Workload> RegroupAxes(const ir::Workload& workload, int stage,
                                         absl::Span<const int64_t> numbers);

// For rewrites that change only the order of summation: any order satisfies the strict bound.
inline double NoTolerance(const ir::Workload&, int, absl::Span<const int64_t>) { return 0; }

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_REWRITES_H_
