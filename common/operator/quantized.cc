#include "common/base/status_macros.h"
#include "common/operator/convolution.h"
#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::DType;

namespace {

// Unsigned activations with zero point 0 times signed weights, as in the dot-product instructions
// of CPUs.
OpBuilder Quantized(std::string name) {
  return OpBuilder(std::move(name), DType::kU8, DType::kI8, DType::kI32);
}

absl::StatusOr<ir::Workload> Product(absl::string_view name, const Arguments& arguments,
                                     bool constant) {
  OpBuilder builder = Quantized(std::string(name));
  const int64_t m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const BufferId a = builder.Input("A", {m, k});
  const BufferId b = constant ? builder.Weight("B", {k, n}) : builder.SecondInput("B", {k, n});
  const Axis i = builder.NewAxis("i", m), j = builder.NewAxis("j", n), r = builder.NewAxis("k", k);
  return builder.Build(
      {builder.Sum("C", {i, j}, {r}, builder.At(a, {i, r}) * builder.At(b, {r, j}))});
}

absl::StatusOr<ir::Workload> QuantizedMatmul(const Arguments& a) {
  return Product("quantized_matmul", a, /*constant=*/false);
}
absl::StatusOr<ir::Workload> QuantizedDense(const Arguments& a) {
  return Product("quantized_dense", a, /*constant=*/true);
}

absl::StatusOr<ir::Workload> QuantizedConv2d(const Arguments& arguments) {
  OpBuilder builder = Quantized("quantized_conv2d");
  HONE_ASSIGN_OR_RETURN(
      const Convolution convolution,
      Convolution::Declare(builder, "quantized_conv2d", arguments, "hw", Layout::kChannelsLast));
  return builder.Build({convolution.AddStage(builder, "Y")});
}

OperatorInfo ProductInfo(std::string name, bool constant,
                         absl::StatusOr<ir::Workload> (*build)(const Arguments&)) {
  return {.name = std::move(name),
          .meaning = constant ? "quantized_matmul with constant weights B"
                              : "C[m, n] = A[m, k] x B[k, n], u8 x i8 summed in i32",
          .keys = {{"m", "rows of A and C"},
                   {"n", "columns of B and C"},
                   {"k", "columns of A, rows of B"}},
          .inputs = {{"A", "m k", false, "u8"}, {"B", "k n", constant, "i8"}},
          .outputs = {{"C", "m n", false, "i32"}},
          .types = Types::kFixed,
          .build = build};
}

}  // namespace

std::vector<OperatorInfo> QuantizedOperators() {
  OperatorInfo conv{
      .name = "quantized_conv2d",
      .meaning = "conv2d of u8 images and i8 weights, summed in i32; padding counts as 0",
      .keys = ConvolutionKeys("hw"),
      .inputs = ConvolutionInputs("hw", Layout::kChannelsLast),
      .outputs = {{"Y", "n oh ow co", false, "i32"}},
      .types = Types::kFixed,
      .build = QuantizedConv2d};
  conv.inputs[0].dtype = "u8";
  conv.inputs[1].dtype = "i8";
  return {std::move(conv), ProductInfo("quantized_dense", true, QuantizedDense),
          ProductInfo("quantized_matmul", false, QuantizedMatmul)};
}

}  // namespace hone::op
