#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

// Losses, and the normalization by mean and variance.
namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;
using Outputs = std::vector<ValueId>;

// Σ over all dimensions, or their mean.
absl::StatusOr<ValueId> ReduceAll(Composer& composer, absl::string_view op, ValueId value) {
  return composer.Apply(op, {value}, {{"keepdims", int64_t{0}}});
}

// The loss of each target: the negated score of its class, times the weight of its class. Targets
// with the attribute ignore_index do not count. `scores`: [n, classes, …]; target: [n, …].
absl::StatusOr<ValueId> Loss(Composer& composer, ValueId scores, ValueId target, ValueId weight) {
  const graph::NodeView node = composer.view();
  HONE_ASSIGN_OR_RETURN(const std::string reduction, node.String("reduction", "mean"));
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return node.InvalidError(absl::StrCat("reduction is '", reduction, "'"));
  }
  const std::vector<int64_t> shape = composer.TypeOf(scores).shape;
  std::vector<int64_t> places = shape, column = shape;
  if (shape.size() >= 2) {
    places.erase(places.begin() + 1);
    column[1] = 1;
  }
  if (shape.size() < 2 || composer.TypeOf(target).shape != places) {
    return node.InvalidError(absl::StrCat("targets of type ", composer.TypeOf(target).ToText(),
                                          " do not fit scores of type ",
                                          composer.TypeOf(scores).ToText()));
  }
  ValueId ignored = kNoValue;
  if (node.HasAttribute("ignore_index")) {
    HONE_ASSIGN_OR_RETURN(const int64_t index, node.Int("ignore_index", 0));
    const ValueId zero = composer.Scalar("zero", target, 0);
    HONE_ASSIGN_OR_RETURN(
        ignored,
        composer.Apply(
            "Equal",
            {target, composer.Constant("ignored", {composer.TypeOf(target).dtype, {}}, {index})}));
    HONE_ASSIGN_OR_RETURN(target, composer.Apply("Where", {ignored, zero, target}));
  }
  HONE_ASSIGN_OR_RETURN(const ValueId indices, composer.Reshape(target, column));
  HONE_ASSIGN_OR_RETURN(
      ValueId loss, composer.Apply("GatherElements", {scores, indices}, {{"axis", int64_t{1}}}));
  HONE_ASSIGN_OR_RETURN(loss, composer.Reshape(loss, places));
  HONE_ASSIGN_OR_RETURN(loss, composer.Apply("Neg", {loss}));
  ValueId weights = kNoValue;  // of the targets
  if (weight != kNoValue) {
    HONE_ASSIGN_OR_RETURN(weights, composer.Apply("Gather", {weight, target}));
  }
  if (ignored != kNoValue) {
    const ValueId one = weights == kNoValue ? composer.Scalar("one", scores, 1) : weights;
    HONE_ASSIGN_OR_RETURN(
        weights, composer.Apply("Where", {ignored, composer.Scalar("none", scores, 0), one}));
  }
  if (weights != kNoValue) {
    HONE_ASSIGN_OR_RETURN(loss, composer.Apply("Mul", {loss, weights}));
  }
  if (reduction == "none") return loss;
  if (reduction == "sum") return ReduceAll(composer, "ReduceSum", loss);
  if (weights == kNoValue) return ReduceAll(composer, "ReduceMean", loss);
  HONE_ASSIGN_OR_RETURN(const ValueId sum, ReduceAll(composer, "ReduceSum", loss));
  HONE_ASSIGN_OR_RETURN(const ValueId count, ReduceAll(composer, "ReduceSum", weights));
  return composer.Apply("Div", {sum, count});
}

absl::Status NeedScoresAndTarget(const Composer& composer) {
  if (composer.input(0) != kNoValue && composer.input(1) != kNoValue) return absl::OkStatus();
  return composer.view().InvalidError("needs scores and targets");
}

absl::StatusOr<Outputs> NegativeLogLikelihoodLoss(Rewrite& composer) {
  HONE_RETURN_IF_ERROR(NeedScoresAndTarget(composer));
  HONE_ASSIGN_OR_RETURN(const ValueId loss,
                        Loss(composer, composer.input(0), composer.input(1), composer.input(2)));
  return Outputs{loss};
}

absl::StatusOr<Outputs> SoftmaxCrossEntropyLoss(Rewrite& composer) {
  HONE_RETURN_IF_ERROR(NeedScoresAndTarget(composer));
  if (composer.TypeOf(composer.input(0)).shape.size() < 2) {
    return composer.view().InvalidError("the scores need a dimension for the classes");
  }
  HONE_ASSIGN_OR_RETURN(const ValueId scores,
                        composer.Apply("LogSoftmax", {composer.input(0)}, {{"axis", int64_t{1}}}));
  HONE_ASSIGN_OR_RETURN(const ValueId loss,
                        Loss(composer, scores, composer.input(1), composer.input(2)));
  return Outputs{loss, scores};
}

absl::StatusOr<Outputs> MeanVarianceNormalization(Rewrite& composer) {
  const ValueId x = composer.input(0);
  if (x == kNoValue) return composer.view().InvalidError("input 0 is missing");
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                        composer.view().IntList("axes", {0, 2, 3}));
  const ValueId reduced = composer.Ints("axes", axes);
  HONE_ASSIGN_OR_RETURN(const ValueId mean, composer.Apply("ReduceMean", {x, reduced}));
  HONE_ASSIGN_OR_RETURN(const ValueId centered, composer.Apply("Sub", {x, mean}));
  HONE_ASSIGN_OR_RETURN(const ValueId squares, composer.Apply("Mul", {centered, centered}));
  HONE_ASSIGN_OR_RETURN(const ValueId variance, composer.Apply("ReduceMean", {squares, reduced}));
  HONE_ASSIGN_OR_RETURN(const ValueId deviation, composer.Apply("Sqrt", {variance}));
  HONE_ASSIGN_OR_RETURN(const ValueId divisor,
                        composer.Apply("Add", {deviation, composer.Scalar("epsilon", x, 1e-9)}));
  HONE_ASSIGN_OR_RETURN(const ValueId result, composer.Apply("Div", {centered, divisor}));
  return Outputs{result};
}

}  // namespace

absl::Span<const Composition> StatisticsCompositions() {
  static constexpr Composition kCompositions[] = {
      {"MeanVarianceNormalization", MeanVarianceNormalization},
      {"NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss},
  };
  return kCompositions;
}

}  // namespace hone::onnx
