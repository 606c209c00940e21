#include "client/network/graph/stage_writer.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hone::graph {

std::vector<std::string> StageText::Reads() const {
  std::vector<std::string> reads;
  const auto is_part = [this](size_t at) {
    return absl::ascii_isalnum(static_cast<unsigned char>(value[at])) || value[at] == '_';
  };
  for (size_t bracket = value.find('['); bracket != std::string::npos;
       bracket = value.find('[', bracket + 1)) {
    size_t begin = bracket;
    while (begin > 0 && is_part(begin - 1)) --begin;
    reads.push_back(value.substr(begin, bracket - begin));
  }
  return reads;
}

std::string StageText::ToText() const {
  const std::string names = absl::StrJoin(tensors, ", ");
  return absl::StrCat(tensors.size() > 1 ? absl::StrCat("(", names, ")") : names, "[",
                      StageWriter::Domain(axes, shape), "] = ", value, "\n");
}

std::string StageWriter::In(int input, const std::vector<std::string>& indices) {
  return absl::StrCat(inputs_[input].name, "[", absl::StrJoin(indices, ", "), "]");
}

std::vector<std::string> StageWriter::Axes(const std::vector<int64_t>& shape,
                                           absl::string_view letter) {
  std::vector<std::string> axes = {absl::StrCat(letter, 0)};
  for (size_t d = 1; d < shape.size(); ++d) axes.push_back(absl::StrCat(letter, d));
  return axes;
}

std::string StageWriter::Domain(const std::vector<std::string>& axes,
                                const std::vector<int64_t>& shape) {
  if (shape.empty()) return absl::StrCat(axes[0], ": 1");
  std::vector<std::string> parts;
  for (size_t d = 0; d < shape.size(); ++d) parts.push_back(absl::StrCat(axes[d], ": ", shape[d]));
  return absl::StrJoin(parts, ", ");
}

std::string StageWriter::Number(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = absl::StrFormat("%.17g", value);
  for (int digits = 1; digits < 17; ++digits) {  // the shortest text of this number
    const std::string shorter = absl::StrFormat("%.*g", digits, value);
    // Not std::stod, which throws if a shorter text is beyond the largest number.
    if (double read; !absl::SimpleAtod(shorter, &read) || read != value) continue;
    text = shorter;
    break;
  }
  if (!absl::StrContains(text, '.') && !absl::StrContains(text, 'e')) absl::StrAppend(&text, ".0");
  return text;
}

void StageWriter::Add(std::vector<std::string> tensors, const std::vector<std::string>& axes,
                      const std::vector<int64_t>& shape, absl::string_view value) {
  stages_.push_back({std::move(tensors), axes, shape, std::string(value)});
}

void StageWriter::Output(int output, const std::vector<std::string>& axes,
                         absl::string_view value) {
  Add({outputs_[output].name}, axes, outputs_[output].type.shape, value);
}

void StageWriter::Outputs(int first, int second, const std::vector<std::string>& axes,
                          absl::string_view value) {
  const auto name = [&](int output) {
    return WantsOutput(output) ? outputs_[output].name : Fresh("unused");
  };
  Add({name(first), name(second)}, axes, outputs_[WantsOutput(first) ? first : second].type.shape,
      value);
}

std::string StageWriter::Stage(absl::string_view name, const std::vector<std::string>& axes,
                               const std::vector<int64_t>& shape, absl::string_view value) {
  const std::string tensor = Fresh(name);
  Add({tensor}, axes, shape, value);
  return tensor;
}

std::pair<std::string, std::string> StageWriter::ExtremeStage(absl::string_view name,
                                                              const std::vector<std::string>& axes,
                                                              const std::vector<int64_t>& shape,
                                                              absl::string_view value) {
  const std::string places = Fresh(name), values = Fresh("unused");
  Add({values, places}, axes, shape, value);
  return {values, places};
}

std::string StageWriter::PlaceStage(absl::string_view name, const std::vector<std::string>& axes,
                                    const std::vector<int64_t>& shape, absl::string_view value) {
  return ExtremeStage(name, axes, shape, value).second;
}

std::string StageWriter::Fresh(absl::string_view name) {
  return absl::StrCat(prefix_, name, fresh_++ == 0 ? "" : absl::StrCat(fresh_));
}

}  // namespace hone::graph
