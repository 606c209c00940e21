#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_MATMUL_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_MATMUL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

// A product of matrices as NumPy's matmul defines it: dimensions before the matrices broadcast, and
// a vector is a matrix with a dimension of extent 1 that the result does not have. The reduction's
// axis is "k". Parameters called `axes` are the axes of the result.
class Product {
 public:
  // InvalidArgument: the shapes of these inputs do not fit.
  static absl::StatusOr<Product> Of(const NodeView& node, int a, int b);

  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t rows() const { return a_[a_.size() - 2]; }
  int64_t columns() const { return b_.back(); }
  int64_t inner() const { return a_.back(); }

  // The indices of the operands.
  std::vector<std::string> Left(const std::vector<std::string>& axes) const;
  std::vector<std::string> Right(const std::vector<std::string>& axes) const;
  // The row and the column of the element in its matrix; "0" where the operand is a vector.
  std::string Row(const std::vector<std::string>& axes) const;
  std::string Column(const std::vector<std::string>& axes) const;

  // Shapes and indices of tensors with one element per row of A or per column of B. Dimensions of
  // the result in which that operand does not vary have the extent 1.
  std::vector<int64_t> RowShape() const;
  std::vector<int64_t> ColumnShape() const;
  std::vector<std::string> RowOf(const std::vector<std::string>& axes) const;
  std::vector<std::string> ColumnOf(const std::vector<std::string>& axes) const;

 private:
  size_t batch() const { return shape_.size() - (a_is_vector_ ? 0 : 1) - (b_is_vector_ ? 0 : 1); }
  // The indices of the batch in an operand of this shape.
  std::vector<std::string> BatchOf(const std::vector<int64_t>& operand,
                                   const std::vector<std::string>& axes) const;
  // The result's shape with extent 1 where the operand does not vary.
  std::vector<int64_t> SumShape(const std::vector<int64_t>& operand, bool is_rows) const;

  std::vector<int64_t> a_, b_;  // at least two dimensions
  bool a_is_vector_ = false, b_is_vector_ = false;
  std::vector<int64_t> shape_;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_MATMUL_H_
