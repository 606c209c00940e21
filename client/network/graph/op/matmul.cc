#include "client/network/graph/op/matmul.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {

absl::StatusOr<Product> Product::Of(const NodeView& node, int a, int b) {
  Product p;
  p.a_ = node.Shape(a);
  p.b_ = node.Shape(b);
  if (p.a_.empty() || p.b_.empty()) return node.InvalidError("an operand is a scalar");
  p.a_is_vector_ = p.a_.size() == 1;
  p.b_is_vector_ = p.b_.size() == 1;
  if (p.a_is_vector_) p.a_.insert(p.a_.begin(), 1);
  if (p.b_is_vector_) p.b_.push_back(1);
  if (p.a_.back() != p.b_[p.b_.size() - 2]) {
    return node.InvalidError(
        absl::StrCat("cannot multiply ", node.Type(a).ToText(), " by ", node.Type(b).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(
      p.shape_, Broadcast(node, {p.a_.begin(), p.a_.end() - 2}, {p.b_.begin(), p.b_.end() - 2}));
  if (!p.a_is_vector_) p.shape_.push_back(p.rows());
  if (!p.b_is_vector_) p.shape_.push_back(p.columns());
  return p;
}

std::vector<std::string> Product::BatchOf(const std::vector<int64_t>& operand,
                                          const std::vector<std::string>& axes) const {
  const auto end = axes.begin() + static_cast<int64_t>(batch());
  std::vector<std::string> indices(end - static_cast<int64_t>(operand.size() - 2), end);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (operand[d] == 1) indices[d] = "0";
  }
  return indices;
}

std::vector<std::string> Product::Left(const std::vector<std::string>& axes) const {
  std::vector<std::string> indices = BatchOf(a_, axes);
  if (!a_is_vector_) indices.push_back(Row(axes));
  indices.push_back("k");
  return indices;
}

std::vector<std::string> Product::Right(const std::vector<std::string>& axes) const {
  std::vector<std::string> indices = BatchOf(b_, axes);
  indices.push_back("k");
  if (!b_is_vector_) indices.push_back(Column(axes));
  return indices;
}

std::string Product::Row(const std::vector<std::string>& axes) const {
  return a_is_vector_ ? "0" : axes[batch()];
}

std::string Product::Column(const std::vector<std::string>& axes) const {
  return b_is_vector_ ? "0" : axes[batch() + (a_is_vector_ ? 0 : 1)];
}

std::vector<int64_t> Product::SumShape(const std::vector<int64_t>& operand, bool is_rows) const {
  std::vector<int64_t> shape(shape_.size(), 1);
  const size_t own = operand.size() - 2;  // the operand's batch dimensions
  for (size_t d = 0; d < own; ++d) shape[batch() - own + d] = operand[d];
  if (is_rows && !a_is_vector_) shape[batch()] = rows();
  if (!is_rows && !b_is_vector_) shape.back() = columns();
  return shape;
}

std::vector<int64_t> Product::RowShape() const { return SumShape(a_, /*is_rows=*/true); }
std::vector<int64_t> Product::ColumnShape() const { return SumShape(b_, /*is_rows=*/false); }

namespace {

std::vector<std::string> Present(const std::vector<int64_t>& shape, std::vector<std::string> axes) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) axes[d] = "0";
  }
  return axes;
}

}  // namespace

std::vector<std::string> Product::RowOf(const std::vector<std::string>& axes) const {
  return Present(RowShape(), axes);
}
std::vector<std::string> Product::ColumnOf(const std::vector<std::string>& axes) const {
  return Present(ColumnShape(), axes);
}

namespace {

absl::StatusOr<Types> InferMatMul(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, 1));
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 1));
  return Types{{node.Type(0).dtype, product.shape()}};
}

absl::Status DefineMatMul(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 1));
  const std::vector<std::string> axes = StageWriter::Axes(product.shape());
  writer.Output(
      0, axes,
      absl::StrCat(Reduction("sum", {"k"}, {product.inner()}), writer.In(0, product.Left(axes)),
                   " * ", writer.In(1, product.Right(axes))));
  return absl::OkStatus();
}

// The largest matrix whose determinant is computed. The formula has n! products.
constexpr int64_t kMaxDeterminant = 4;

absl::StatusOr<Types> InferDet(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  const std::vector<int64_t>& shape = node.Shape(0);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2]) {
    return node.InvalidError(absl::StrCat("needs square matrices, not ", node.Type(0).ToText()));
  }
  if (shape.back() < 1 || shape.back() > kMaxDeterminant) {
    return node.UnimplementedError(absl::StrCat(
        "matrices of ", shape.back(), " rows are not supported; use 1 to ", kMaxDeterminant));
  }
  return Types{{node.Type(0).dtype, {shape.begin(), shape.end() - 2}}};
}

// The determinant of the rows from `row` on in these columns, by expansion along the first row.
// `element` returns the formula of an element.
template <typename ElementAt>
std::string Determinant(int64_t row, const std::vector<int64_t>& columns,
                        const ElementAt& element) {
  if (columns.size() == 1) return element(row, columns[0]);
  std::string sum;
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<int64_t> others = columns;
    others.erase(others.begin() + static_cast<int64_t>(c));
    absl::StrAppend(&sum,
                    c == 0       ? ""
                    : c % 2 == 0 ? " + "
                                 : " - ",
                    element(row, columns[c]), " * ", others.size() == 1 ? "" : "(",
                    Determinant(row + 1, others, element), others.size() == 1 ? "" : ")");
  }
  return sum;
}

absl::Status DefineDet(const NodeView& node, StageWriter& writer) {
  const int64_t n = node.Shape(0).back(), batch = node.Rank(0) - 2;
  const ir::DType dtype = node.Type(0).dtype, wide = ir::AccumulatorOf(dtype);
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  std::vector<int64_t> columns;
  for (int64_t c = 0; c < n; ++c) columns.push_back(c);
  const auto element = [&](int64_t row, int64_t column) {
    std::vector<std::string> indices(axes.begin(), axes.begin() + batch);
    indices.push_back(absl::StrCat(row));
    indices.push_back(absl::StrCat(column));
    return Convert(dtype, wide, writer.In(0, indices));
  };
  writer.Output(0, axes, Convert(wide, dtype, Determinant(0, columns, element)));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> MatMulOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Det", 1, 1, InferDet, DefineDet, "float types; up to 4 rows"},
      {"MatMul", 2, 2, InferMatMul, DefineMatMul}};
  return kOperators;
}

namespace {

// Y = alpha * A' * B' + beta * C, where A' and B' may be transposed.
struct Gemm {
  bool transpose_a, transpose_b;
  double alpha, beta;
  int64_t rows, columns, inner;

  static absl::StatusOr<Gemm> Of(const NodeView& node) {
    Gemm g;
    HONE_ASSIGN_OR_RETURN(const int64_t transpose_a, node.Int("transA", 0));
    HONE_ASSIGN_OR_RETURN(const int64_t transpose_b, node.Int("transB", 0));
    HONE_ASSIGN_OR_RETURN(g.alpha, node.Float("alpha", 1));
    HONE_ASSIGN_OR_RETURN(g.beta, node.Float("beta", 1));
    g.transpose_a = transpose_a != 0;
    g.transpose_b = transpose_b != 0;
    const std::vector<int64_t>&a = node.Shape(0), &b = node.Shape(1);
    if (a.size() != 2 || b.size() != 2 || a[g.transpose_a ? 0 : 1] != b[g.transpose_b ? 1 : 0]) {
      return node.InvalidError(
          absl::StrCat("cannot multiply ", node.Type(0).ToText(), " by ", node.Type(1).ToText()));
    }
    g.rows = a[g.transpose_a ? 1 : 0];
    g.inner = a[g.transpose_a ? 0 : 1];
    g.columns = b[g.transpose_b ? 0 : 1];
    return g;
  }
};

absl::StatusOr<Types> InferGemm(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, node.inputs() - 1));
  HONE_ASSIGN_OR_RETURN(const Gemm g, Gemm::Of(node));
  if (!ir::IsFloat(node.Type(0).dtype) && (g.alpha != 1 || g.beta != 1)) {
    return node.UnimplementedError("alpha and beta of integers are not supported");
  }
  const std::vector<int64_t> shape = {g.rows, g.columns};
  if (node.Has(2)) {
    HONE_ASSIGN_OR_RETURN(const auto joined, Broadcast(node, shape, node.Shape(2)));
    if (joined != shape) return node.InvalidError("C is larger than the product");
  }
  return Types{{node.Type(0).dtype, shape}};
}

std::string Scaled(ir::DType dtype, double factor, const std::string& value) {
  return factor == 1 ? value : absl::StrCat(Literal(dtype, factor), " * ", value);
}

absl::Status DefineGemm(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Gemm g, Gemm::Of(node));
  const std::vector<std::string> axes = {"i", "j"};
  const auto element = [&](int input, std::string first, std::string second, bool transposed) {
    if (transposed) std::swap(first, second);
    return writer.In(input, {first, second});
  };
  const bool adds = node.Has(2) && g.beta != 0, is_plain = g.alpha == 1 && !adds;
  const ir::DType dtype = node.Type(0).dtype;
  // Only the result is rounded to a short float. Before alpha, the product may be too large for it.
  const ir::DType wide = is_plain ? dtype : ir::AccumulatorOf(dtype);
  const std::string product = absl::StrCat(
      Reduction("sum", {"k"}, {g.inner}), Convert(dtype, wide, element(0, "i", "k", g.transpose_a)),
      " * ", Convert(dtype, wide, element(1, "k", "j", g.transpose_b)));
  if (is_plain) {
    writer.Output(0, axes, product);
    return absl::OkStatus();
  }
  const std::string sum = writer.Stage("product", axes, {g.rows, g.columns}, product);
  std::string value = Scaled(wide, g.alpha, Element(sum, axes));
  if (adds) {
    const std::string c = BroadcastElement(writer, 2, node.Shape(2), axes);
    absl::StrAppend(&value, " + ", Scaled(wide, g.beta, Convert(dtype, wide, c)));
  }
  writer.Output(0, axes, Convert(wide, dtype, value));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> GemmOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Gemm", 2, 3, InferGemm, DefineGemm, "alpha and beta only of floats"}};
  return kOperators;
}

}  // namespace hone::graph
