#include "client/network/graph/op/moments.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/formula.h"

namespace hone::graph {

Normalized Normalized::Tail(const NodeView& node, int64_t axis) {
  Normalized parts{.axes = StageWriter::Axes(node.Shape(0))};
  for (int64_t d = 0; d < node.Rank(0); ++d) {
    const std::string& i = parts.axes[d];
    if (d < axis) {
      parts.groups.push_back(i);
      parts.shape.push_back(node.Shape(0)[d]);
      parts.element.push_back(i);
      parts.first.push_back(i);
    } else {
      parts.members.push_back(absl::StrCat("k", d));
      parts.extents.push_back(node.Shape(0)[d]);
      parts.element.push_back(parts.members.back());
      parts.first.push_back("0");
    }
  }
  parts.own = parts.groups;
  parts.first_of_own = parts.first;
  if (axis == 0) {  // a single group
    parts.groups = {"i"};
    parts.own = {"0"};
  }
  return parts;
}

Normalized Normalized::Channels(const NodeView& node, int64_t groups) {
  const std::vector<int64_t>& shape = node.Shape(0);
  const int64_t channels = shape[1] / groups;  // per group
  Normalized parts{.axes = StageWriter::Axes(shape)};
  const std::string &n = parts.axes[0], &c = parts.axes[1];
  const std::string own = channels == 1 ? c : absl::StrCat(c, " / ", channels);
  parts.groups = {n, "g"};
  parts.shape = {shape[0], groups};
  parts.own = {n, own};
  parts.element = {n, "g"};
  parts.first = {n, channels == 1 ? "g" : absl::StrCat("g * ", channels)};
  parts.first_of_own = {n, channels == 1 ? own : absl::StrCat(own, " * ", channels)};
  if (channels > 1) {
    parts.members.push_back("c");
    parts.extents.push_back(channels);
    parts.element[1] = absl::StrCat("g * ", channels, " + c");
  }
  for (size_t d = 2; d < shape.size(); ++d) {
    parts.members.push_back(absl::StrCat("k", d));
    parts.extents.push_back(shape[d]);
    parts.element.push_back(parts.members.back());
    parts.first.push_back("0");
    parts.first_of_own.push_back("0");
  }
  return parts;
}

Moments::Moments(const NodeView& node, StageWriter& writer, Normalized parts, double epsilon,
                 bool centered)
    : writer_(writer),
      parts_(std::move(parts)),
      input_dtype_(node.Type(0).dtype),
      dtype_(ir::AccumulatorOf(input_dtype_)),
      epsilon_(epsilon),
      centered_(centered) {
  const double count = static_cast<double>(TensorType{.shape = parts_.extents}.elements());
  share_ = Literal(dtype_, 1 / count);
  const std::string reduction = Reduction("sum", parts_.members, parts_.extents);
  if (centered_) {
    sum_ = writer.Stage("sum", parts_.groups, parts_.shape,
                        absl::StrCat(reduction, At(parts_.element), " - ", At(parts_.first)));
  }
  const std::string deviation = Deviation(parts_.element, parts_.first, parts_.groups);
  squares_ = writer.Stage("squares", parts_.groups, parts_.shape,
                          absl::StrCat(reduction, deviation, " * ", deviation));
}

std::string Moments::Value() const {
  return absl::StrCat(Deviation(parts_.axes, parts_.first_of_own, parts_.own), " * ",
                      InverseDeviation());
}

std::string Moments::Mean() const {
  return absl::StrCat(At(parts_.first_of_own), " + ", Element(sum_, parts_.own), " * ", share_);
}

std::string Moments::InverseDeviation() const {
  return absl::StrCat("rsqrt(", Element(squares_, parts_.own), " * ", share_, " + ",
                      Literal(dtype_, epsilon_), ")");
}

std::string Moments::At(const std::vector<std::string>& indices) const {
  return Convert(input_dtype_, dtype_, writer_.In(0, indices));
}

std::string Moments::Deviation(const std::vector<std::string>& element,
                               const std::vector<std::string>& first,
                               const std::vector<std::string>& group) const {
  if (!centered_) return At(element);
  return absl::StrCat("(", At(element), " - ", At(first), " - ", Element(sum_, group), " * ",
                      share_, ")");
}

}  // namespace hone::graph
