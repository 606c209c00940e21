// Networks whose tensors between kernels are in bf16: --between of `hone run` and `hone export`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/npy.h"
#include "client/network/graph/interpreter.h"
#include "client/network/onnx/import.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/integration/hone_home.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::integration {
namespace {

using nlohmann::json;
using onnx::Initializer;
using onnx::NodeText;
using testing::HasSubstr;

constexpr int kFloat = 1, kInt64 = 7;

class Bf16Test : public testing::Test {
 protected:
  // An initializer with random numbers of about this size.
  std::string Weights(const std::string& name, const std::string& shape, int64_t elements,
                      double size) {
    std::vector<std::string> drawn;
    for (int64_t i = 0; i < elements; ++i) {
      drawn.push_back(absl::StrCat((static_cast<double>(rng_.Below(2001)) / 1000 - 1) * size));
    }
    return Initializer(name, kFloat, shape,
                       absl::StrCat("float_data: [", absl::StrJoin(drawn, ", "), "]"));
  }
  std::string Dense(const std::string& x, const std::string& y, int64_t inputs, int64_t outputs) {
    return absl::StrCat(Weights(absl::StrCat("w_", y), absl::StrCat(inputs, ", ", outputs),
                                inputs * outputs, 1.7 / std::sqrt(static_cast<double>(inputs))),
                        NodeText("MatMul", absl::StrCat(x, " w_", y), y));
  }

  // Writes a model and an input, and computes the output.
  void Use(const std::string& graph, const std::vector<int64_t>& shape) {
    model_ = files_ / "net.onnx";
    ASSERT_THAT(WriteFileAtomically(model_, onnx::BytesOf(graph), Durability::kProcess), IsOk());
    const absl::StatusOr<graph::Graph> imported = onnx::ImportOnnx(model_);
    ASSERT_THAT(imported, IsOk());
    ir::Scalars drawn(imported->value(imported->inputs[0]).type.elements());
    std::vector<float> input;
    for (ir::Scalar& element : drawn) {
      input.push_back(static_cast<float>(rng_.Below(2001)) / 1000 - 1);
      element = input.back();
    }
    const auto computed = graph::Interpret(*imported, std::vector<ir::Scalars>{drawn});
    ASSERT_THAT(computed, IsOk());
    std::vector<float> output;
    for (const ir::Scalar& element : (*computed)[0]) {
      output.push_back(static_cast<float>(element.real()));
    }
    const std::vector<int64_t>& type = imported->value(imported->outputs[0]).type.shape;
    input_ = Array("in.npy", shape, input);
    expected_ = Array("out.npy", type, output);
  }

  json Run(const std::string& tolerance, const std::string& between = "bf16") {
    const Result result =
        home_.Hone({"run", model_, "--draft", "--tolerance", tolerance, "--between", between,
                    "--in", input_, "--expect", expected_, "--json", "--profile"});
    EXPECT_EQ(result.code, 0) << result.errors;
    errors_ = result.errors;
    return OneLineOfJson(result.output);
  }
  // All tensors are in bf16, which halves their bytes, and the tolerance holds.
  void ExpectAllInBf16(int64_t least_tensors) {
    const json all = Run("0.03"), between = all["between"];
    EXPECT_GE(between["tensors"], least_tensors) << between;
    EXPECT_EQ(between["tensors_in_bf16"], between["tensors"]) << between;
    EXPECT_EQ(2 * between["bytes"].get<int64_t>(), between["bytes_in_f32"].get<int64_t>());
    EXPECT_GT(between["error"], 1e-5);
    EXPECT_LT(between["error"], 0.03);
    EXPECT_NEAR(all["max_error"].get<double>(), between["error"].get<double>(), 1e-5);
    EXPECT_THAT(errors_, HasSubstr("tensors between kernels are in bf16"));

    // Not even one rounding is allowed, so nothing is tried.
    const json strict = Run("1e-3");
    EXPECT_FALSE(strict.contains("between"));
    EXPECT_LT(strict["max_error"], 1e-3);
    // The same steps: conversions are parts of the kernels.
    EXPECT_EQ(strict["steps"].size(), all["steps"].size()) << all["steps"];
  }

  std::string Array(const std::string& name, const std::vector<int64_t>& shape,
                    const std::vector<float>& elements) {
    const std::string path = files_ / name;
    std::ofstream(path) << client::NpyHeader(ir::DType::kF32, {shape.begin(), shape.end()})
                        << std::string(reinterpret_cast<const char*>(elements.data()),
                                       elements.size() * sizeof(float));
    return path;
  }

  HoneHome home_;
  TemporaryFolder files_;
  Rng rng_{3, 0};
  std::string model_, input_, expected_, errors_;
};

TEST_F(Bf16Test, DenseLayers) {
  std::string graph = absl::StrCat(onnx::Input("x", kFloat, "32, 64"), onnx::Output("y"));
  std::string x = "x";
  for (int layer = 0; layer < 4; ++layer) {
    const std::string sum = absl::StrCat("s", layer), result = absl::StrCat("r", layer);
    absl::StrAppend(&graph, Dense(x, sum, 64, 64), NodeText("Relu", sum, result));
    x = result;
  }
  absl::StrAppend(&graph, Dense(x, "y", 64, 16));
  Use(graph, {32, 64});
  ExpectAllInBf16(4);

  // A tolerance between the error of one rounding and that of all: some tensors get f32 back. It
  // does not allow products of bf16, which some CPUs compute.
  const double error = Run("0.007")["between"]["error"];
  const json some = Run(absl::StrCat(std::max(error * 0.8, 0.00196)));
  EXPECT_LE(some["max_error"].get<double>(), std::max(error * 0.8, 0.00196) + 1e-5) << some;
  if (error * 0.8 > 0.00196) {
    EXPECT_LT(some["between"]["tensors_in_bf16"], 4) << some;
  }

  // "auto" decides by time, and says why.
  const json decided = Run("0.03", "auto")["between"];
  EXPECT_GT(decided["gain"], 0) << decided;
  EXPECT_EQ(decided["tensors_in_bf16"] == 0, decided["why_f32"] != "") << decided;
  EXPECT_FALSE(Run("0.03", "f32").contains("between"));

  const Result exported = home_.Hone({"export", model_, "--draft", "--tolerance", "0.03",
                                      "--between", "bf16", "-o", files_ / "net", "--json"});
  ASSERT_EQ(exported.code, 0) << exported.errors;
  EXPECT_EQ(OneLineOfJson(exported.output)["between"]["tensors_in_bf16"], 4);
  EXPECT_TRUE(std::filesystem::exists(files_ / "net/libnet.so"));
}

// `hone tune --between bf16` tunes the tasks that `hone run --between bf16` needs.
TEST_F(Bf16Test, TunedTasksAreUsed) {
  Use(absl::StrCat(onnx::Input("x", kFloat, "32, 64"), onnx::Output("y"), Dense("x", "s", 64, 64),
                   NodeText("Relu", "s", "r"), Dense("r", "y", 64, 16)),
      {32, 64});
  const std::vector<std::string> options = {model_,      "--tolerance", "0.03",
                                            "--between", "bf16",        "--json"};
  const auto with = [&](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), more.begin(), more.end());
    return home_.Hone(words);
  };
  const std::vector<std::string> files = {"--in", input_, "--expect", expected_};
  // Nothing is known, and drafts were not asked for.
  const Result unknown = with({"run"}, files);
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.errors, HasSubstr("find them with: hone tune "));
  EXPECT_THAT(unknown.errors, HasSubstr(" --between bf16"));
  EXPECT_EQ(Run("0.03")["between"]["untuned_tasks"], 2);
  EXPECT_THAT(errors_, HasSubstr("tune the 2 tasks without a confirmed schedule with: hone tune "));
  EXPECT_THAT(errors_, HasSubstr(" --between bf16 --only-missing"));

  const Result tuned = with({"tune"}, {"--trials", "12"});
  EXPECT_EQ(tuned.code, 0) << tuned.errors;
  EXPECT_THAT(tuned.errors, HasSubstr("1 of 1 tensor between kernels is in bf16"));
  const json tasks = OneLineOfJson(tuned.output)["tasks"];
  ASSERT_EQ(tasks.size(), 2) << tasks;
  EXPECT_THAT(tasks.dump(), HasSubstr("bf16"));

  const Result ran = with({"run"}, files);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const json run = OneLineOfJson(ran.output);
  EXPECT_EQ(run["between"]["tensors_in_bf16"], 1) << run;
  EXPECT_EQ(run["schedule_count"]["draft"], 0) << run;
  EXPECT_LT(run["max_error"], 0.03);
}

TEST_F(Bf16Test, ConvolutionsWithAShortcut) {
  const std::string pads = onnx::Ints("pads", "1, 1, 1, 1");
  const auto conv = [&](const std::string& x, const std::string& y, int64_t from, int64_t to) {
    return absl::StrCat(Weights(absl::StrCat("w_", y), absl::StrCat(to, ", ", from, ", 3, 3"),
                                to * from * 9, 0.6 / std::sqrt(static_cast<double>(from))),
                        NodeText("Conv", absl::StrCat(x, " w_", y), y, pads));
  };
  Use(absl::StrCat(onnx::Input("x", kFloat, "1, 3, 16, 16"), onnx::Output("y"),
                   conv("x", "a", 3, 16), NodeText("Relu", "a", "b"), conv("b", "c", 16, 16),
                   NodeText("Relu", "c", "d"), conv("d", "e", 16, 16), NodeText("Add", "e b", "f"),
                   NodeText("Relu", "f", "g"), NodeText("GlobalAveragePool", "g", "y")),
      {1, 3, 16, 16});
  ExpectAllInBf16(3);
}

TEST_F(Bf16Test, Attention) {
  const std::string heads =
      absl::StrCat(Initializer("heads", kInt64, "4", "int64_data: [1, 32, 4, 16]"),
                   Initializer("joined", kInt64, "3", "int64_data: [1, 32, 64]"));
  const auto split = [&](const std::string& name, const std::string& order) {
    const std::string dense = absl::StrCat(name, "_dense"), parts = absl::StrCat(name, "_parts");
    return absl::StrCat(Dense("x", dense, 64, 64), NodeText("Reshape", dense + " heads", parts),
                        NodeText("Transpose", parts, name, onnx::Ints("perm", order)));
  };
  Use(absl::StrCat(onnx::Input("x", kFloat, "1, 32, 64"), onnx::Output("y"), heads,
                   split("q", "0, 2, 1, 3"), split("k", "0, 2, 3, 1"), split("v", "0, 2, 1, 3"),
                   NodeText("MatMul", "q k", "scores"),
                   NodeText("Softmax", "scores", "shares", onnx::Int("axis", -1)),
                   NodeText("MatMul", "shares v", "values"),
                   NodeText("Transpose", "values", "moved", onnx::Ints("perm", "0, 2, 1, 3")),
                   NodeText("Reshape", "moved joined", "flat"), Dense("flat", "dense", 64, 64),
                   NodeText("Add", "dense x", "sum"), NodeText("Relu", "sum", "gate"),
                   Dense("gate", "y", 64, 64)),
      {1, 32, 64});
  ExpectAllInBf16(4);
}

}  // namespace
}  // namespace hone::integration
