#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/samples.h"
#include "common/base/status_macros.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::graph {

int64_t PositionOf(const std::vector<int64_t>& shape, int64_t element, size_t dimension) {
  for (size_t d = shape.size() - 1; d > dimension; --d) element /= shape[d];
  return element % shape[dimension];
}

namespace {

class SampleComparison {
 public:
  SampleComparison(const Graph& graph, int64_t samples, const Graph& other, int64_t other_samples)
      : graph_(graph), samples_(samples), other_(other), other_samples_(other_samples) {}

  absl::StatusOr<SampleAxes> Run() {
    if (graph_.nodes.size() != other_.nodes.size()) {
      return Differs("the number of nodes");
    }
    SampleAxes& axes = axes_;
    HONE_ASSIGN_OR_RETURN(axes.inputs, AxesOf(graph_.inputs, other_.inputs));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      HONE_RETURN_IF_ERROR(CompareNodes(graph_.nodes[n], other_.nodes[n]));
    }
    HONE_ASSIGN_OR_RETURN(axes.outputs, AxesOf(graph_.outputs, other_.outputs));
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const ValueId a = graph_.outputs[o], b = other_.outputs[o];
      const bool same = graph_.IsConstant(a) == other_.IsConstant(b) &&
                        (graph_.IsConstant(a) ? ConstantsFit(a, b)
                                              : graph_.value(a).name == other_.value(b).name);
      if (!same) return Differs(absl::StrCat("output '", graph_.value(a).name, "'"));
    }
    return axes;
  }

 private:
  absl::Status Differs(absl::string_view what) const {
    return absl::FailedPreconditionError(absl::StrCat(what, " depends on the size"));
  }

  // The dimensions that grow with the number of samples.
  absl::StatusOr<std::vector<int>> GrowingDimensions(const Value& value, const Value& other) const {
    const std::vector<int64_t>& shape = value.type.shape;
    const std::vector<int64_t>& others = other.type.shape;
    const absl::Status differs = Differs(absl::StrCat("the shape of '", value.name, "'"));
    if (value.type.dtype != other.type.dtype || shape.size() != others.size()) return differs;
    std::vector<int> growing;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == others[d]) continue;
      const bool in_proportion = shape[d] % samples_ == 0 && others[d] % other_samples_ == 0 &&
                                 shape[d] / samples_ == others[d] / other_samples_;
      if (!in_proportion) return differs;
      growing.push_back(static_cast<int>(d));
    }
    return growing;
  }

  // The only one of these dimensions.
  absl::StatusOr<int> AxisOf(const Value& value, const Value& other) const {
    HONE_ASSIGN_OR_RETURN(const std::vector<int> growing, GrowingDimensions(value, other));
    if (growing.size() > 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", value.name, "' has two dimensions that depend on the size"));
    }
    return growing.empty() ? kNoAxis : growing[0];
  }

  absl::StatusOr<std::vector<int>> AxesOf(const std::vector<ValueId>& ids,
                                          const std::vector<ValueId>& others) const {
    if (ids.size() != others.size()) return Differs("the number of inputs or outputs");
    std::vector<int> axes;
    for (size_t i = 0; i < ids.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(axes.emplace_back(),
                            AxisOf(graph_.value(ids[i]), other_.value(others[i])));
    }
    return axes;
  }

  absl::Status CompareNodes(const Node& node, const Node& other) {
    const std::string what = absl::StrCat("node '", node.name, "' (", node.op, ")");
    if (node.op != other.op || node.attributes != other.attributes ||
        node.inputs.size() != other.inputs.size() || node.outputs.size() != other.outputs.size()) {
      return Differs(what);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId a = node.inputs[i], b = other.inputs[i];
      if ((a == kNoValue) != (b == kNoValue)) return Differs(what);
      if (a == kNoValue) continue;
      // The types of the results say what these shapes and ends are.
      const bool is_shape =
          i == 1 ? node.op == "Reshape" || node.op == "Expand" : i == 2 && node.op == "Slice";
      if (graph_.IsConstant(a) != other_.IsConstant(b)) return Differs(what);
      if (graph_.IsConstant(a) ? !is_shape && !ConstantsFit(a, b)
                               : graph_.value(a).name != other_.value(b).name) {
        return Differs(absl::StrCat("input ", i, " of ", what));
      }
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId a = node.outputs[o], b = other.outputs[o];
      if ((a == kNoValue) != (b == kNoValue)) return Differs(what);
      if (a == kNoValue) continue;
      if (graph_.value(a).name != other_.value(b).name) return Differs(what);
      HONE_ASSIGN_OR_RETURN(std::vector<int> growing,
                            GrowingDimensions(graph_.value(a), other_.value(b)));
      if (!growing.empty()) axes_.growing[a] = std::move(growing);
    }
    return absl::OkStatus();
  }

  // Whether two constants are equal, or the other one has the first samples of a growing one.
  bool ConstantsFit(ValueId id, ValueId other_id) {
    const Value &a = graph_.value(id), &b = other_.value(other_id);
    if (a.type == b.type) {
      return a.constant->origin() == b.constant->origin() ||
             a.constant->bytes() == b.constant->bytes();
    }
    const absl::StatusOr<std::vector<int>> growing = GrowingDimensions(a, b);
    if (!growing.ok() || growing->size() > 2 || ir::IsPacked(a.type.dtype)) return false;
    const std::vector<int64_t>&shape = a.type.shape, &others = b.type.shape;
    const auto bytes_each = static_cast<size_t>(ir::BytesOf(a.type.dtype, 1));
    const absl::string_view elements = a.constant->bytes(), prefix = b.constant->bytes();
    const size_t row_bytes = others.back() * bytes_each;
    for (int64_t row = 0; row < b.type.elements(); row += others.back()) {
      int64_t at = 0;
      for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + PositionOf(others, row, d);
      if (elements.substr(at * bytes_each, row_bytes) !=
          prefix.substr(row * bytes_each, row_bytes)) {
        return false;
      }
    }
    axes_.growing[id] = *growing;
    return true;
  }

  const Graph& graph_;
  const int64_t samples_;
  const Graph& other_;
  const int64_t other_samples_;
  SampleAxes axes_;
};

}  // namespace

absl::StatusOr<SampleAxes> CompareSamples(const Graph& graph, int64_t samples, const Graph& other,
                                          int64_t other_samples) {
  return SampleComparison(graph, samples, other, other_samples).Run();
}

bool DifferOnlyInExtents(const ir::Workload& a, const ir::Workload& b) {
  if (a.tensors.size() != b.tensors.size() || a.stages.size() != b.stages.size() ||
      a.pool.size() != b.pool.size() || a.atoms.size() != b.atoms.size()) {
    return false;
  }
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const ir::Tensor &x = a.tensors[t], &y = b.tensors[t];
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size() || x.input != y.input ||
        x.output != y.output || x.bound != y.bound || x.stage != y.stage) {
      return false;
    }
  }
  const auto same_axes = [](const std::vector<ir::Axis>& x, const std::vector<ir::Axis>& y,
                            bool same_extents) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [&](const ir::Axis& p, const ir::Axis& q) {
                        return p.var == q.var && (!same_extents || p.extent == q.extent);
                      });
  };
  for (size_t s = 0; s < a.stages.size(); ++s) {
    const ir::Stage &x = a.stages[s], &y = b.stages[s];
    if (x.tensors != y.tensors || x.reducer != y.reducer || x.values != y.values ||
        x.guards != y.guards || !same_axes(x.spatial, y.spatial, /*same_extents=*/false) ||
        !same_axes(x.reduce, y.reduce, /*same_extents=*/true)) {
      return false;
    }
  }
  for (ir::AtomId id = 0; id < a.atoms.size(); ++id) {
    const ir::Atom &x = a.atoms[id], &y = b.atoms[id];
    if (x.kind != y.kind || x.divisor != y.divisor || !(x.argument == y.argument)) return false;
  }
  for (ir::ExprId id = 0; id < a.pool.size(); ++id) {
    const ir::Expr &x = a.pool[id], &y = b.pool[id];
    if (x.op != y.op || x.dtype != y.dtype || x.gathered != y.gathered || x.a != y.a ||
        x.b != y.b || x.c != y.c || x.buffer != y.buffer || x.indices != y.indices ||
        !(x.value == y.value)) {
      return false;
    }
    if (x.indices >= 0 && a.pool.IndicesOf(x) != b.pool.IndicesOf(y)) return false;
  }
  return true;
}

}  // namespace hone::graph
