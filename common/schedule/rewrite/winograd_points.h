#ifndef HONE_COMMON_SCHEDULE_REWRITE_WINOGRAD_POINTS_H_
#define HONE_COMMON_SCHEDULE_REWRITE_WINOGRAD_POINTS_H_

#include <vector>

namespace hone::schedule {

using Matrix = std::vector<std::vector<double>>;

// The matrices of F(m, 3): y = Aᵀ[(G·g) ⊙ (Bᵀ·d)] computes m outputs of a 3-tap filter on m + 2
// inputs. They are the transposed Toom–Cook construction on m + 1 finite points and ∞. Only G
// contains the points' denominators, so Aᵀ and Bᵀ hold dyadic fractions and are exact in f32.
struct WinogradMatrices {
  Matrix bt;  // α × α
  Matrix g;   // α × 3
  Matrix at;  // m × α
};

// REQUIRES m = 2 (points 0, ±1, ∞), 4 (adds ±2) or 6 (also adds ±1/2).
WinogradMatrices MakeWinogradMatrices(int m);

// The largest factor by which an error can exceed that of the plain sum: the maximum over outputs
// of Σ |Aᵀ|·(|G|·|g| ⊙ |Bᵀ|·|d|) / Σ |g|·|d| in two dimensions, for equal magnitudes within a tile.
double WinogradAmplification(int m);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_WINOGRAD_POINTS_H_
