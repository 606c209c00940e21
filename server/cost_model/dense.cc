#include "server/cost_model/dense.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace hone::cost_model {
namespace {

// out += Σ a[k]·b.row(k), four rows at a time: `out` is read and written a quarter as often.
void AddCombination(const float* a, const Matrix& b, float* __restrict out) {
  const int n = b.columns;
  int k = 0;
  for (; k + 4 <= b.rows; k += 4) {
    const float *b0 = b.row(k), *b1 = b.row(k + 1), *b2 = b.row(k + 2), *b3 = b.row(k + 3);
    const float a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
    for (int j = 0; j < n; ++j) out[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
  }
  for (; k < b.rows; ++k) {
    const float* row = b.row(k);
    for (int j = 0; j < n; ++j) out[j] += a[k] * row[j];
  }
}

}  // namespace

void AddProduct(const Matrix& a, const Matrix& b, Matrix& out) {
  for (int r = 0; r < a.rows; ++r) AddCombination(a.row(r), b, out.row(r));
}

void AddTransposedProduct(const Matrix& a, const Matrix& b, Matrix& out) {
  AddProduct(Transposed(a), b, out);
}

Matrix Transposed(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (int r = 0; r < a.rows; ++r) {
    for (int c = 0; c < a.columns; ++c) result.row(c)[r] = a.row(r)[c];
  }
  return result;
}

bool Cholesky::Factor(std::vector<double> matrix, int n) {
  // Column by column to the right: each finished column leaves its outer product behind. The lower
  // half of the row-major matrix is walked as the upper half of its transpose, so that the inner
  // loop is contiguous.
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < j; ++i)
      matrix[static_cast<size_t>(i) * n + j] = matrix[static_cast<size_t>(j) * n + i];
  }
  for (int j = 0; j < n; ++j) {
    double* column = matrix.data() + static_cast<size_t>(j) * n;
    if (!(column[j] > 0) || !std::isfinite(column[j])) return false;
    const double root = std::sqrt(column[j]);
    for (int i = j; i < n; ++i) column[i] /= root;
    for (int k = j + 1; k < n; ++k) {
      double* __restrict later = matrix.data() + static_cast<size_t>(k) * n;
      const double factor = column[k];
      for (int i = k; i < n; ++i) later[i] -= factor * column[i];
    }
  }
  n_ = n;
  columns_ = std::move(matrix);
  return true;
}

double Cholesky::LogDeterminant() const {
  double sum = 0;
  for (int j = 0; j < n_; ++j) sum += std::log(columns_[static_cast<size_t>(j) * n_ + j]);
  return 2 * sum;
}

void Cholesky::SolveLower(absl::Span<double> x) const {
  for (int j = 0; j < n_; ++j) {
    const double* column = columns_.data() + static_cast<size_t>(j) * n_;
    const double value = x[j] /= column[j];
    for (int i = j + 1; i < n_; ++i) x[i] -= value * column[i];
  }
}

void Cholesky::SolveUpper(absl::Span<double> x) const {
  for (int j = n_ - 1; j >= 0; --j) {
    const double* column = columns_.data() + static_cast<size_t>(j) * n_;
    double value = x[j];
    for (int i = j + 1; i < n_; ++i) value -= column[i] * x[i];
    x[j] = value / column[j];
  }
}

}  // namespace hone::cost_model
