#include "client/cli/model_argument.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/onnx/import.h"
#include "common/base/status_macros.h"

namespace hone::cli {

bool NamesModel(absl::string_view word) { return absl::EndsWith(word, ".onnx"); }

absl::StatusOr<std::map<std::string, std::vector<int64_t>>> ParseShapes(
    const std::vector<std::string>& words) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& word : words) {
    const size_t end = word.rfind('=');  // the name may contain =
    std::vector<int64_t> shape;
    bool legal = end != std::string::npos && end > 0;
    if (legal) {
      for (const absl::string_view extent : absl::StrSplit(word.substr(end + 1), 'x')) {
        shape.push_back(0);
        legal = legal && absl::SimpleAtoi(extent, &shape.back()) && shape.back() >= 0;
      }
    }
    if (!legal) {
      return absl::InvalidArgumentError(
          absl::StrCat("--shape ", word, ": give the name of an input and its extents, as in ",
                       "--shape x=1x3x224x224"));
    }
    if (shapes.emplace(word.substr(0, end), std::move(shape)).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("--shape ", word, ": the shape is given twice"));
  }
  return shapes;
}

absl::StatusOr<graph::Graph> ReadModelArgument(const std::string& path,
                                               const std::vector<std::string>& shapes) {
  onnx::ImportOptions options;
  HONE_ASSIGN_OR_RETURN(options.shapes, ParseShapes(shapes));
  return onnx::ImportOnnx(path, options);
}

}  // namespace hone::cli
