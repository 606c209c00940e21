#include "server/tuner/cost_model/dense.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace hone::cost_model {
namespace {

// out += Σ a[k]·b.row(k), four rows at a time, which reads and writes `out` a quarter as often.
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

std::vector<double> Cholesky::Append(std::vector<double> row, double diagonal) {
  constexpr double kLeastPivot = 1e-10;
  if (n_ == stride_) {
    const int stride = std::max(16, 2 * stride_);
    std::vector<double> columns(static_cast<size_t>(stride) * stride, 0.0);
    for (int j = 0; j < n_; ++j)
      std::copy_n(column(j), n_, columns.begin() + static_cast<size_t>(j) * stride);
    columns_ = std::move(columns);
    stride_ = stride;
  }
  SolveLower(absl::MakeSpan(row));
  double pivot = diagonal;
  for (const double each : row) pivot -= each * each;
  row.push_back(std::sqrt(std::max(pivot, kLeastPivot * diagonal)));
  for (int j = 0; j <= n_; ++j) columns_[static_cast<size_t>(j) * stride_ + n_] = row[j];
  ++n_;
  return row;
}

double Cholesky::LogDeterminant() const {
  double sum = 0;
  for (int j = 0; j < n_; ++j) sum += std::log(column(j)[j]);
  return 2 * sum;
}

void Cholesky::SolveLower(absl::Span<double> x) const {
  double* __restrict const out = x.data();
  int j = 0;
  // Four columns at a time, which reads and writes `out` a quarter as often.
  for (; j + 4 <= n_; j += 4) {
    const double *c0 = column(j), *c1 = column(j + 1), *c2 = column(j + 2), *c3 = column(j + 3);
    const double x0 = out[j] /= c0[j];
    const double x1 = out[j + 1] = (out[j + 1] - x0 * c0[j + 1]) / c1[j + 1];
    const double x2 = out[j + 2] = (out[j + 2] - x0 * c0[j + 2] - x1 * c1[j + 2]) / c2[j + 2];
    const double x3 = out[j + 3] =
        (out[j + 3] - x0 * c0[j + 3] - x1 * c1[j + 3] - x2 * c2[j + 3]) / c3[j + 3];
    for (int i = j + 4; i < n_; ++i)
      out[i] -= (x0 * c0[i] + x1 * c1[i]) + (x2 * c2[i] + x3 * c3[i]);
  }
  for (; j < n_; ++j) {
    const double value = out[j] /= column(j)[j];
    for (int i = j + 1; i < n_; ++i) out[i] -= value * column(j)[i];
  }
}

void Cholesky::SolveUpper(absl::Span<double> x) const {
  for (int j = n_ - 1; j >= 0; --j) {
    double value = x[j];
    for (int i = j + 1; i < n_; ++i) value -= column(j)[i] * x[i];
    x[j] = value / column(j)[j];
  }
}

std::vector<double> Cholesky::Product(absl::Span<const double> x) const {
  std::vector<double> product(n_, 0.0);
  for (int j = 0; j < n_; ++j) {
    for (int i = j; i < n_; ++i) product[i] += column(j)[i] * x[j];
  }
  return product;
}

}  // namespace hone::cost_model
