#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/broadcast.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/matmul.h"
#include "client/network/graph/op/quantized.h"
#include "common/base/status_macros.h"

// Products of u8 and i8 matrices.
namespace hone::graph {
namespace {

using ir::DType;

// The positions of the inputs, which differ between QLinearMatMul and MatMulInteger.
struct ProductInputs {
  int a, b, a_zero, b_zero;
};
constexpr ProductInputs kMatMulInteger = {0, 1, 2, 3};
constexpr ProductInputs kQLinearMatMul = {0, 3, 2, 5};

absl::Status Check(const NodeView& node, const ProductInputs& in, const Product& product) {
  for (const int input : {in.a, in.b}) {
    if (IsByte(node.Type(input).dtype)) continue;
    return node.InvalidError(absl::StrCat("multiplies ", node.Type(input).ToText()));
  }
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, in.a_zero, product.rows()));
  return NeedPerChannel(node, in.b_zero, product.columns());
}

// Writes the product with i32 elements and returns its value at `axes`. Zero points are subtracted
// from the sum of products: Σ(a − p)(b − q) = Σab − qΣa − pΣb + kpq. Instructions for u8 and i8 can
// then compute Σab.
std::string WriteProduct(const NodeView& node, StageWriter& writer, const ProductInputs& in,
                         const Product& product, const std::vector<std::string>& axes) {
  const auto whole = [&](int input, const std::vector<std::string>& indices) {
    return Convert(node.Type(input).dtype, DType::kI32, writer.In(input, indices));
  };
  const std::string over = Reduction("sum", {"k"}, {product.inner()});
  const std::string a = whole(in.a, product.Left(axes)), b = whole(in.b, product.Right(axes));
  const std::string sum =
      writer.Stage("product", axes, product.shape(), absl::StrCat(over, a, " * ", b));
  std::string value = Element(sum, axes);
  const bool shifts_a = !IsZero(node, in.a_zero), shifts_b = !IsZero(node, in.b_zero);
  const auto zero = [&](int input, const std::string& channel) {
    return Convert(node.Type(input).dtype, DType::kI32, PerChannel(node, writer, input, channel));
  };
  if (shifts_b) {
    const std::string sums = writer.Stage("rows", axes, product.RowShape(), absl::StrCat(over, a));
    absl::StrAppend(&value, " - ", Element(sums, product.RowOf(axes)), " * ",
                    zero(in.b_zero, product.Column(axes)));
  }
  if (shifts_a) {
    const std::string sums =
        writer.Stage("columns", axes, product.ColumnShape(), absl::StrCat(over, b));
    absl::StrAppend(&value, " - ", Element(sums, product.ColumnOf(axes)), " * ",
                    zero(in.a_zero, product.Row(axes)));
  }
  if (shifts_a && shifts_b) {
    absl::StrAppend(&value, " + ", zero(in.a_zero, product.Row(axes)), " * ",
                    zero(in.b_zero, product.Column(axes)), " * ", product.inner());
  }
  return value;
}

absl::StatusOr<Types> InferMatMulInteger(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 1));
  HONE_RETURN_IF_ERROR(Check(node, kMatMulInteger, product));
  return Types{{DType::kI32, product.shape()}};
}

absl::Status DefineMatMulInteger(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 1));
  const std::vector<std::string> axes = StageWriter::Axes(product.shape());
  writer.Output(0, axes, WriteProduct(node, writer, kMatMulInteger, product, axes));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferQLinearMatMul(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 3));
  HONE_RETURN_IF_ERROR(Check(node, kQLinearMatMul, product));
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, 1, product.rows()));
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, 4, product.columns()));
  if (!IsByte(node.Type(7).dtype) || node.Type(6).elements() != 1 || node.Type(7).elements() != 1) {
    return node.UnimplementedError("the result needs one scale and one zero point of u8 or i8");
  }
  for (const int scale : {1, 4, 6}) HONE_RETURN_IF_ERROR(NeedFloat(node, scale));
  return Types{{node.Type(7).dtype, product.shape()}};
}

absl::Status DefineQLinearMatMul(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 3));
  const std::vector<std::string> axes = StageWriter::Axes(product.shape());
  const std::string sum = WriteProduct(node, writer, kQLinearMatMul, product, axes);
  const auto scale = [&](int input, const std::string& channel) {
    return Convert(node.Type(input).dtype, DType::kF32, PerChannel(node, writer, input, channel));
  };
  const std::string scaled =
      absl::StrCat("f32(", sum, ") * (", scale(1, product.Row(axes)), " * ",
                   scale(4, product.Column(axes)), " / ", scale(6, "0"), ")");
  const std::string zero_point = IsZero(node, 7) ? "" : First(node, writer, 7);
  writer.Output(0, axes, Saturated(scaled, zero_point, node.Type(7).dtype));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> QuantizedMatMulOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"MatMulInteger", 2, 4, InferMatMulInteger, DefineMatMulInteger, "u8 and i8"},
      {"QLinearMatMul", 8, 8, InferQLinearMatMul, DefineQLinearMatMul, "u8 and i8"},
  };
  return kOperators;
}

}  // namespace hone::graph
