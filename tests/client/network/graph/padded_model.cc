#include "tests/client/network/graph/padded_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "tests/client/network/onnx/model_text.h"

namespace hone::graph {
namespace {

// The tensor with another extent in one dimension: the first elements of it, or padded with
// `padding`, or else with the last ones.
ir::Scalars WithExtent(const ir::Scalars& from, const std::vector<int64_t>& shape, int axis,
                       int64_t extent, const std::optional<ir::Scalar>& padding) {
  int64_t blocks = 1, stride = 1;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (d < axis) blocks *= shape[d];
    if (d > axis) stride *= shape[d];
  }
  ir::Scalars to;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t s = 0; s < extent; ++s) {
      for (int64_t e = 0; e < stride; ++e) {
        const int64_t at = std::min(s, shape[axis] - 1);
        to.push_back(s > at && padding.has_value() ? *padding
                                                   : from[(b * shape[axis] + at) * stride + e]);
      }
    }
  }
  return to;
}

bool AreNear(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-5 * (1 + std::abs(a));
}

}  // namespace

absl::StatusOr<PaddedModel> PaddedModel::Of(const std::string& text, int64_t size, int opset) {
  PaddedModel model;
  model.size_ = size;
  for (int64_t value = 1; value <= size; ++value) {
    HONE_ASSIGN_OR_RETURN(
        model.graphs_[value],
        onnx::ImportOnnxBytes(onnx::BytesOf(text, opset), "", {.shapes = {{"N", {value}}}}));
  }
  const Graph& graph = model.graphs_.at(size);
  for (int64_t value = 1; value < size; ++value) {
    HONE_ASSIGN_OR_RETURN(model.axes_, CompareSamples(graph, size, model.graphs_.at(value), value));
  }
  HONE_ASSIGN_OR_RETURN(model.masks_, CheckSamplesAreIndependent(graph, size, model.axes_));
  return model;
}

absl::Status PaddedModel::CompareRuns(int seed) const {
  for (int64_t value = 1; value < size_; ++value) {
    HONE_RETURN_IF_ERROR(CompareRun(value, seed));
  }
  return absl::OkStatus();
}

absl::Status PaddedModel::CompareRun(int64_t value, int seed) const {
  std::mt19937 random(seed * 100 + static_cast<int>(value));
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % end); };
  const Graph &graph = graphs_.at(value), &padded = graphs_.at(size_);
  std::vector<ir::Scalars> inputs, padded_inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    const ir::DType dtype = input.type.dtype;
    const auto number = [&](int64_t whole) {
      return ir::IsFloat(dtype) ? ir::Scalar(static_cast<double>(whole))
                                : ir::CastTo(dtype, ir::Scalar(whole));
    };
    ir::Scalars elements;
    for (int64_t e = 0; e < input.type.elements(); ++e) {
      elements.push_back(input.name == "mask" ? number(below(2))
                         : ir::IsFloat(dtype) ? ir::Scalar((below(17) - 8) / 8.0)
                                              : number(below(10)));
    }
    const auto mask = absl::c_find_if(
        masks_, [&](const InputMask& each) { return each.input == static_cast<int>(i); });
    std::optional<ir::Scalar> padding;
    if (mask != masks_.end()) {
      padding = Decode({dtype, {}}, mask->hides)[0];
      const ir::Scalar shows = Decode({dtype, {}}, mask->shows.back())[0];
      // The rows of a mask are its last dimension.
      for (int64_t row = 0; row < input.type.elements(); row += value) {
        const bool needs_first = mask->needs == InputMask::Needs::kFirst;
        if (mask->needs == InputMask::Needs::kNothing) break;
        elements[row + (needs_first ? 0 : below(value))] = shows;
      }
    }
    const int axis = axes_.inputs[i];
    padded_inputs.push_back(
        axis == kNoAxis ? elements : WithExtent(elements, input.type.shape, axis, size_, padding));
    inputs.push_back(std::move(elements));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalars> wanted, Interpret(graph, inputs));
  HONE_ASSIGN_OR_RETURN(std::vector<ir::Scalars> made, Interpret(padded, padded_inputs));
  for (size_t o = 0; o < made.size(); ++o) {
    const int axis = axes_.outputs[o];
    if (axis != kNoAxis) {
      made[o] = WithExtent(made[o], padded.value(padded.outputs[o]).type.shape, axis, value, {});
    }
    for (size_t e = 0; e < made[o].size(); ++e) {
      if (AreNear(wanted[o][e].real(), made[o][e].real())) continue;
      return absl::InternalError(absl::StrCat("N = ", value, ", seed ", seed, ": element ", e,
                                              " of output '", graph.value(graph.outputs[o]).name,
                                              "' is ", wanted[o][e].real(), " without padding and ",
                                              made[o][e].real(), " with it"));
    }
  }
  return absl::OkStatus();
}

absl::Status RunsArePadded(const PaddedModel& model) {
  for (int seed = 0; seed < 8; ++seed) HONE_RETURN_IF_ERROR(model.CompareRuns(seed));
  return absl::OkStatus();
}

}  // namespace hone::graph
