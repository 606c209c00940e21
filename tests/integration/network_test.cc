// A network from an ONNX file with the real programs: hone tune, best, run and export.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/lib/npy.h"
#include "client/onnx/import.h"
#include "common/graph/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"

namespace hone::integration {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kMnist[] = "tests/client/onnx/testdata/mnist-8.onnx";
constexpr int kPixels = 28 * 28;

class NetworkTest : public ::testing::Test {
 protected:
  std::string Array(const std::string& name, const ir::Shape& shape,
                    const std::vector<float>& elements) {
    const std::string path = files_ / name;
    std::ofstream(path) << client::NpyHeader(ir::DType::kF32, shape)
                        << std::string(reinterpret_cast<const char*>(elements.data()),
                                       elements.size() * sizeof(float));
    return path;
  }

  HoneHome home_;
  TemporaryFolder files_;
};

TEST_F(NetworkTest, IsTunedRunAndExported) {
  std::vector<float> pixels(kPixels);
  for (int i = 0; i < kPixels; ++i) pixels[i] = static_cast<float>(i % 29) / 29;
  const absl::StatusOr<graph::Graph> graph = onnx::ImportOnnx(kMnist);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<ir::Scalars> scalars = {ir::Scalars(pixels.begin(), pixels.end())};
  const auto computed = graph::Interpret(*graph, scalars);
  ASSERT_TRUE(computed.ok()) << computed.status();
  std::vector<float> scores;
  for (const ir::Scalar& score : (*computed)[0]) scores.push_back(static_cast<float>(score.real()));
  const std::string input = Array("input.npy", {1, 1, 28, 28}, pixels);
  const std::string expected = Array("expected.npy", {1, 10}, scores);

  Result result = home_.Hone({"run", kMnist, "--in", input});
  EXPECT_EQ(result.code, 3) << "nothing is known";
  EXPECT_THAT(result.errors, HasSubstr("no schedule is known for 5 of the 5 tasks"));

  result = home_.Hone({"tune", kMnist, "--trials", "10", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  json report = OneLineOfJson(result.output);
  EXPECT_EQ(report["trials"], 10);
  EXPECT_EQ(report["tasks"].size(), 5u);
  EXPECT_GT(report["latency_ns"].get<double>(), 0);
  for (const json& task : report["tasks"]) EXPECT_TRUE(task["confirmed"].get<bool>()) << task;

  result = home_.Hone({"best", kMnist, "--json"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(OneLineOfJson(result.output)["known"], 5);

  const std::string output = files_ / "output.npy";
  result = home_.Hone({"run", kMnist, "--in", input, "--out", output, "--expect", expected,
                       "--repeat", "3", "--profile", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  report = OneLineOfJson(result.output);
  EXPECT_LT(report["max_error"].get<double>(), 1e-5);
  EXPECT_GE(report["latency_ns"]["p90"].get<double>(), report["latency_ns"]["p10"].get<double>());
  EXPECT_EQ(report["steps"].size(), 5u);
  EXPECT_EQ(std::filesystem::file_size(output), std::filesystem::file_size(expected));

  scores[3] += 100;
  const std::string other = Array("other.npy", {1, 10}, scores);
  result = home_.Hone({"run", kMnist, "--in", input, "--expect", other, "--json"});
  EXPECT_GT(OneLineOfJson(result.output)["max_error"].get<double>(), 1e-3);

  const std::string folder = files_ / "exported";
  result = home_.Hone({"export", kMnist, "-o", folder, "--name", "digits"});
  ASSERT_EQ(result.code, 0) << result.errors;
  for (const char* const name : {"libdigits.so", "digits.weights", "digits.h", "digits.py"})
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(folder, "/", name))) << name;
}

TEST_F(NetworkTest, MistakesNameTheOption) {
  const struct {
    std::vector<std::string> words;
    const char* error;
  } cases[] = {
      {{"run", kMnist}, "needs 1 files with --in: Input3: f32[1, 1, 28, 28]; 0 are given"},
      {{"run", "relu", "m=4", "n=4", "--profile"}, "are for networks (FILE.onnx)"},
      {{"tune", "relu", "m=4", "n=4", "--patience", "3"}, "are for a network (FILE.onnx)"},
      {{"tune", kMnist, "--space", "templates"}, "--space is for operators"},
      {{"best", kMnist, "--shape", "Input3=1x1x30x30"}, "does not fit"},
  };
  for (const auto& c : cases) {
    const Result result = home_.Hone(c.words);
    EXPECT_EQ(result.code, 2) << c.error;
    EXPECT_THAT(result.errors, HasSubstr(c.error));
  }
}

}  // namespace
}  // namespace hone::integration
