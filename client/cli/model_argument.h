#ifndef HONE_CLIENT_CLI_MODEL_ARGUMENT_H_
#define HONE_CLIENT_CLI_MODEL_ARGUMENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/graph/graph.h"

namespace hone::cli {

// The help of the option --shape.
inline constexpr char kShapeHelp[] =
    "The shape of an input of a model, as NAME=1x3x224x224, where the model leaves it open. May be "
    "repeated; NAME=4 also sets a dimension with a name";

// Whether a word names a file with a network: it ends with ".onnx".
bool NamesModel(absl::string_view word);

// Reads the values of --shape. InvalidArgument: one is not of the form NAME=1x3x224x224, or a name
// is given twice.
absl::StatusOr<std::map<std::string, std::vector<int64_t>>> ParseShapes(
    const std::vector<std::string>& words);

// Reads a network from a file. Errors are those of ParseShapes and onnx::ImportOnnx.
absl::StatusOr<graph::Graph> ReadModelArgument(const std::string& path,
                                               const std::vector<std::string>& shapes);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_MODEL_ARGUMENT_H_
