#ifndef HONE_SERVER_TUNER_COST_MODEL_DENSE_H_
#define HONE_SERVER_TUNER_COST_MODEL_DENSE_H_

#include <vector>

#include "absl/types/span.h"

namespace hone::cost_model {

// Dense algebra for the models. The operations on a row do not depend on the other rows, so a
// candidate's score does not depend on its batch.
struct Matrix {
  Matrix() = default;
  Matrix(int row_count, int column_count)
      : rows(row_count),
        columns(column_count),
        values(static_cast<size_t>(row_count) * column_count, 0.0f) {}

  int rows = 0;
  int columns = 0;
  std::vector<float> values;  // row-major

  float* row(int r) { return values.data() + static_cast<size_t>(r) * columns; }
  const float* row(int r) const { return values.data() + static_cast<size_t>(r) * columns; }
};

// out += a·b. REQUIRES: the sizes match.
void AddProduct(const Matrix& a, const Matrix& b, Matrix& out);
// out += aᵀ·b.
void AddTransposedProduct(const Matrix& a, const Matrix& b, Matrix& out);
Matrix Transposed(const Matrix& a);

// The Cholesky factor L of a symmetric positive definite matrix L·Lᵀ. Rows can be added.
class Cholesky {
 public:
  // Adds a row of the matrix, given its entries left of the diagonal and its diagonal entry, in
  // O(n²). Returns the new row of L. The square of a pivot is at least 1e-10 of its diagonal entry,
  // so a matrix that rounding has made singular still has a factor. REQUIRES: row.size() == size(),
  // diagonal > 0.
  std::vector<double> Append(std::vector<double> row, double diagonal);

  int size() const { return n_; }
  double LogDeterminant() const;
  // Compute x = L⁻¹·x and x = L⁻ᵀ·x. REQUIRES: x.size() == size().
  void SolveLower(absl::Span<double> x) const;
  void SolveUpper(absl::Span<double> x) const;
  // Returns L·x.
  std::vector<double> Product(absl::Span<const double> x) const;

 private:
  const double* column(int j) const { return columns_.data() + static_cast<size_t>(j) * stride_; }

  int n_ = 0;
  int stride_ = 0;
  std::vector<double> columns_;  // L by columns: entry (i, j) at j·stride + i
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_DENSE_H_
