#ifndef HONE_COMMON_SCHEDULE_REWRITE_WINOGRAD_POINTS_H_
#define HONE_COMMON_SCHEDULE_REWRITE_WINOGRAD_POINTS_H_

#include <vector>

namespace hone::schedule {

using Matrix = std::vector<std::vector<double>>;

// The matrices of F(m, 3): y = Aᵀ[(G·g) ⊙ (Bᵀ·d)] gives m outputs of a filter of 3 on m + 2 inputs.
// Toom and Cook's construction on m + 1 finite points and ∞, transposed; the points' denominators
// are in G alone, so Aᵀ and Bᵀ hold dyadic fractions and are exact in f32.
struct WinogradMatrices {
  Matrix bt;  // α × α
  Matrix g;   // α × 3
  Matrix at;  // m × α
};

// REQUIRES m = 2 (points 0, ±1, ∞), 4 (and ±2) or 6 (and ±1/2).
WinogradMatrices MakeWinogradMatrices(int m);

// How much larger an error may get than that of the plain sum, at worst: max over outputs of
// Σ |Aᵀ|·(|G|·|g| ⊙ |Bᵀ|·|d|) / Σ |g|·|d| in two dimensions, for magnitudes that are equal within a
// tile.
double WinogradAmplification(int m);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_WINOGRAD_POINTS_H_
