// Runs the node tests of the ONNX project, which libonnx-testdata installs, and those of newer
// operators, which make_nodes.py writes: imports each model and compares what the graph's
// interpreter computes with the expected outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/import.h"
#include "client/network/onnx/tensor_file.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "tests/client/network/onnx/node_test_list.h"
#include "tests/status.h"

namespace hone::onnx {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "/usr/share/libonnx-testdata/data/node";
constexpr char kOwnFolder[] = "tests/client/network/onnx/testdata/nodes";
constexpr char kAbsent[] = "absent";

// The folders of the tests.
std::vector<std::string> TestFolders(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) folders.push_back(absl::StrCat(folder, "/", kAbsent));
  return folders;
}

std::string NameOf(const std::string& test) { return fs::path(test).filename().string(); }

absl::StatusOr<std::vector<NamedTensor>> ReadTensors(const std::string& test,
                                                     absl::string_view kind) {
  std::vector<NamedTensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = absl::StrCat(test, "/test_data_set_0/", kind, "_", i, ".pb");
    if (!fs::exists(path)) return tensors;
    HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    HONE_ASSIGN_OR_RETURN(NamedTensor tensor, ParseTensorFile(bytes));
    tensors.push_back(std::move(tensor));
  }
}

// Imports the model of a test, given by its folder. Where shapes depend on inputs, they become
// constants: all but the first one, or all.
absl::StatusOr<graph::Graph> ImportNode(const std::string& test) {
  const std::string path = absl::StrCat(test, "/model.onnx");
  absl::StatusOr<graph::Graph> graph = ImportOnnx(path);
  if (!absl::IsFailedPrecondition(graph.status())) return graph;
  HONE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> inputs, ReadTensors(test, "input"));
  ImportOptions options;
  for (const size_t first : {1, 0}) {
    for (size_t i = first; i < inputs.size(); ++i) {
      options.constants.emplace(inputs[i].name, inputs[i].tensor);
    }
    graph = ImportOnnx(path, options);
    if (!absl::IsFailedPrecondition(graph.status())) break;
  }
  return graph;
}

// Integers must be equal, floats within the precision of the type relative to the largest element.
absl::Status Compare(const graph::TensorType& type, const ir::Scalars& actual,
                     const ir::Scalars& expected) {
  double largest = 0;
  for (const ir::Scalar& element : expected) {
    if (std::isfinite(element.real())) largest = std::max(largest, std::fabs(element.real()));
  }
  double tolerance = 0;
  if (ir::IsFloat(type.dtype)) {
    tolerance = type.dtype == ir::DType::kBF16  ? 0.01
                : type.dtype == ir::DType::kF16 ? 0.002
                                                : 1e-5;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const ir::Scalar a = actual[i], b = expected[i];
    if (a == b || (std::isnan(a.real()) && std::isnan(b.real()))) continue;
    if (std::fabs(a.real() - b.real()) <= tolerance * largest) continue;
    return absl::InternalError(absl::StrCat("element ", i, " of ", type.ToText(), " is ",
                                            a.ToText(), " instead of ", b.ToText()));
  }
  return absl::OkStatus();
}

absl::Status RunTest(const std::string& test) {
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph, ImportNode(test));
  HONE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> inputs, ReadTensors(test, "input"));
  HONE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> expected, ReadTensors(test, "output"));
  std::vector<ir::Scalars> given;
  for (const graph::ValueId id : graph.inputs) {
    auto input = std::find_if(inputs.begin(), inputs.end(), [&](const NamedTensor& tensor) {
      return tensor.name == graph.value(id).name;
    });
    // The files of some releases give the inputs other names.
    if (input == inputs.end() && inputs.size() == graph.inputs.size()) {
      input = inputs.begin() + static_cast<int64_t>(given.size());
    }
    if (input == inputs.end()) return absl::InternalError("an input is not in the data");
    given.push_back(Decode(input->tensor.type, input->tensor.data.bytes()));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalars> outputs, Interpret(graph, given));
  if (outputs.size() != expected.size()) return absl::InternalError("wrong number of outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const graph::TensorType& type = graph.value(graph.outputs[i]).type;
    const Tensor& tensor = expected[i].tensor;
    if (type != tensor.type) {
      return absl::InternalError(
          absl::StrCat("an output is ", type.ToText(), " instead of ", tensor.type.ToText()));
    }
    HONE_RETURN_IF_ERROR(Compare(type, outputs[i], Decode(tensor.type, tensor.data.bytes())));
  }
  return absl::OkStatus();
}

class NodeTest : public testing::TestWithParam<std::string> {};

TEST_P(NodeTest, GivesExpectedOutputs) {
  const std::string name = NameOf(GetParam());
  // These are always present, and Hone has their operators.
  const bool is_own = absl::StartsWith(GetParam(), kOwnFolder);
  if (name == kAbsent) {
    ASSERT_FALSE(is_own) << GetParam() << "; run this in the root of the repository";
    GTEST_SKIP() << GetParam() << "; install libonnx-testdata";
  }
  const absl::Status status = RunTest(GetParam());
  if (!is_own && absl::StrContains(status.message(), "hone operators --onnx")) {
    GTEST_SKIP() << status.message();
  }
  if (!status.ok() && DependsOnRelease(name)) GTEST_SKIP() << status.message();
  const std::string reason = WhyNotSupported(name);
  if (reason.empty()) {
    EXPECT_THAT(status, IsOk());
  } else {
    EXPECT_FALSE(status.ok()) << "passes, but is listed: " << reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Onnx, NodeTest, testing::ValuesIn(TestFolders(kFolder)),
                         [](const auto& info) { return NameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Newer, NodeTest, testing::ValuesIn(TestFolders(kOwnFolder)),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hone::onnx
