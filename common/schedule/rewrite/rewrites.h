#ifndef HONE_COMMON_SCHEDULE_REWRITE_REWRITES_H_
#define HONE_COMMON_SCHEDULE_REWRITE_REWRITES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

// What the registry lists. Contracts: Rewrite::apply and Rewrite::tolerance.
namespace hone::schedule {

// Winograd's minimal filtering F(m×m, 3×3) (Lavin and Gray, Fast Algorithms for Convolutional
// Neural Networks, 2016) for Y[n, h, w, co] = Σ X[n, h+r−p, w+s−p, ci]·W[r, s, ci, co] in f32 or
// f64, any padding, tails included. m = 2, 4 or 6 with the points 0, ±1, ∞; and ±2; and ±1/2. With
// α = m + 2 and t the tiles:
//   Y_d[t, i, j, ci]    the input's tile with zeros around
//   Y_bd[t, x, j, ci]   = Bᵀ·Y_d
//   Y_v[x, y, t, ci]    = Y_bd·B
//   Y_u[x, y, ci, co]   = G·W·Gᵀ in f64, rounded once; of constant weights, so ahead of time
//   Y_m[x, y, t, co]    = Σ_ci Y_v·Y_u
//   Y_am[t, a, y, co]   = Aᵀ·Y_m
//   Y[n, h, w, co]      = Y_am·A
// The tolerance is relative to the largest magnitude of a tile: an output whose own 3×3 window is
// much smaller than the rest of its tile has the error of the tile.
// FailedPrecondition: another kernel size, stride or dilation, groups, another layout or dtype.
absl::StatusOr<ir::Workload> Winograd(const ir::Workload& workload, int stage,
                                      absl::Span<const int64_t> numbers);
double WinogradTolerance(const ir::Workload& workload, int stage,
                         absl::Span<const int64_t> numbers);

// The windowed factor of a sum of products is first gathered into a tensor with an axis for each
// axis that it depends on, with zeros where a guard fails (0·∞ is taken as 0): for a convolution
// Y_p[n, h, w, r, s, ci], of which the sum is a matrix product. FailedPrecondition: not a sum of
// products, or not just one factor whose index mixes an output's axis and a reduced one.
absl::StatusOr<ir::Workload> Im2col(const ir::Workload& workload, int stage,
                                    absl::Span<const int64_t> numbers);

// The longest reduction axis (the first of equals) in `parts` pieces that are reduced on their own,
// then together:
//   Y_part[part, …] = Σ over the part; Y[…] = Σ_part Y_part. Any reducer, tuples too.
// InvalidArgument: fewer than 2 parts or more than terms. FailedPrecondition: the stage does not
// reduce, or a shorter last part would read outside of a tensor.
absl::StatusOr<ir::Workload> SplitK(const ir::Workload& workload, int stage,
                                    absl::Span<const int64_t> numbers);

// The maximum and the sum of a softmax in one pass (Milakov and Gimelshein, Online normalizer
// calculation for softmax, 2018). The stage is S = Σ exp(x − M) with M = max x over the same axes,
// through element-wise stages or not:
//   (M, S)[…] = online_softmax (x, 1). Stages that only S read are gone.
// FailedPrecondition: says in what the stages differ.
absl::StatusOr<ir::Workload> OnlineSoftmax(const ir::Workload& workload, int stage,
                                           absl::Span<const int64_t> numbers);

// Of rewrites that change the order of summation alone: a sum in any order stays within the strict
// bound.
inline double NoTolerance(const ir::Workload&, int, absl::Span<const int64_t>) { return 0; }

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_REWRITES_H_
