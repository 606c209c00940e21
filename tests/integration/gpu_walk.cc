#include "tests/integration/gpu_walk.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/npy.h"
#include "client/network/graph/interpreter.h"
#include "client/network/onnx/import.h"
#include "common/base/file.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/client/network/onnx/open_models.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Bytes(const Floats& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

Floats FromBytes(absl::string_view bytes) {
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

void ExpectClose(const Floats& got, const Floats& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], wanted[i], 1e-5 + 1e-4 * std::abs(wanted[i])) << "element " << i;
  }
}

constexpr char kMnist[] = "tests/client/network/onnx/testdata/mnist-8.onnx";

// The first output of a network with one input, by the interpreter.
Floats Interpreted(const std::string& path, const Floats& input,
                   const onnx::ImportOptions& options = {}) {
  const absl::StatusOr<graph::Graph> graph = onnx::ImportOnnx(path, options);
  EXPECT_THAT(graph, IsOk());
  const std::vector<ir::Scalars> scalars = {ir::Scalars(input.begin(), input.end())};
  const auto computed = graph::Interpret(*graph, scalars);
  EXPECT_THAT(computed, IsOk());
  Floats output;
  for (const ir::Scalar& element : (*computed)[0]) {
    output.push_back(static_cast<float>(element.real()));
  }
  return output;
}

}  // namespace

std::string Array::Npy() const { return client::NpyHeader(ir::DType::kF32, shape) + Bytes(values); }

Array Input(const std::string& name, const ir::Shape& shape, int step) {
  Array array{name, shape, Floats(ir::ElementsOf(shape))};
  for (size_t i = 0; i < array.values.size(); ++i) {
    array.values[i] = static_cast<float>(static_cast<int>(i * step % 201) - 100) / 100;
  }
  return array;
}

Case Matmul(int m) {
  constexpr int kN = 32, kK = 64;
  Case c{{"matmul", absl::StrCat("m=", m), "n=32", "k=64"},
         {Input("A", {m, kK}, 7), Input("B", {kK, kN}, 11)},
         {"C", {m, kN}, Floats(m * kN)}};
  for (int i = 0; i < m * kN; ++i) {
    double sum = 0;
    for (int k = 0; k < kK; ++k) {
      sum += static_cast<double>(c.inputs[0].values[i / kN * kK + k]) *
             c.inputs[1].values[k * kN + i % kN];
    }
    c.output.values[i] = static_cast<float>(sum);
  }
  return c;
}

Case Softmax() {
  constexpr int kM = 24, kN = 96;
  Case c{{"softmax", "m=24", "n=96"}, {Input("X", {kM, kN}, 13)}, {"Y", {kM, kN}, Floats(kM * kN)}};
  for (int row = 0; row < kM; ++row) {
    const float* x = &c.inputs[0].values[row * kN];
    double sum = 0;
    for (int k = 0; k < kN; ++k) sum += std::exp(x[k]);
    for (int k = 0; k < kN; ++k) {
      c.output.values[row * kN + k] = static_cast<float>(std::exp(x[k]) / sum);
    }
  }
  return c;
}

std::string File(const TemporaryFolder& folder, const std::string& name,
                 const std::string& content) {
  std::ofstream(folder / name, std::ios::binary) << content;
  return folder / name;
}

void GpuWalk::NeedDevice() {
  const Result listed = RunProgram({"hone-worker", "--list-devices"});
  ASSERT_EQ(listed.code, 0) << listed.errors;
  if (!absl::StrContains(listed.output, gpu_.interface + ":0")) GTEST_SKIP() << listed.output;
}

nlohmann::json GpuWalk::Object(const Words& words) {
  const Result result = home_.Hone(With(words, {"--json"}), absl::Minutes(10));
  EXPECT_EQ(result.code, 0) << words[0] << ": " << result.errors << result.output;
  const nlohmann::json object = OneLineOfJson(result.output);
  EXPECT_TRUE(object.is_object()) << words[0] << ": " << result.output;
  return object;
}

void GpuWalk::ExpectError(int code, const Words& words,
                          const ::testing::Matcher<std::string>& message) {
  const Result result = home_.Hone(words);
  EXPECT_EQ(result.code, code) << result.errors;
  EXPECT_THAT(result.errors, message);
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir())) << "a server was started";
}

void GpuWalk::ExpectListed() {
  const std::string name = gpu_.interface + ":0";
  const Result listed = RunProgram({"hone-worker", "--list-devices"});
  EXPECT_THAT(listed.output,
              ContainsRegex(absl::StrCat("^cpu .*\n", name, " .* ", gpu_.key, ".*driver")));
  bool found = false;
  const nlohmann::json doctor = OneLineOfJson(home_.Hone({"doctor", "--json"}).output);
  for (const nlohmann::json& check : doctor["checks"]) {
    if (check["name"] != name) continue;
    found = true;
    EXPECT_EQ(check["state"], "ok");
    EXPECT_THAT(std::string(check["finding"]), HasSubstr(gpu_.key));
  }
  EXPECT_TRUE(found) << doctor;
}

void GpuWalk::Walk(const Case& c) {
  Tune(c);
  if (HasFatalFailure()) return;
  Show(c);
  Export(c);
  Run(c);
  Check(c);
}

void GpuWalk::Tune(const Case& c) {
  const Words target = Target();
  EXPECT_EQ(home_.Hone(With(With({"best"}, c.words), target)).code, 3) << "nothing is known yet";
  const nlohmann::json tuned =
      Object(With(With({"tune", "--trials", "4", "--seed", "1"}, c.words), target));
  ASSERT_TRUE(tuned.is_object() && tuned["best"].is_object()) << tuned;
  target_ = tuned["target"];
  EXPECT_THAT(target_, StartsWith(gpu_.key));
  EXPECT_EQ(tuned["trials"], 4);
  EXPECT_FALSE(tuned["outcomes"].contains("wrong_output")) << tuned["outcomes"];
  EXPECT_GT(tuned["outcomes"].value("ok", 0), 0) << tuned["outcomes"];
  EXPECT_EQ(tuned["best"]["confirmed"], true);

  // The best belongs to the device, whichever of its names is given, and to no other target.
  for (const std::string& name : {gpu_.interface, gpu_.interface + ":0", target_}) {
    const nlohmann::json best = Object(With(With({"best"}, c.words), {"--target", name}));
    EXPECT_EQ(best["target"], target_);
    EXPECT_EQ(best["best"]["latency_ns"], tuned["best"]["latency_ns"]);
  }
  EXPECT_EQ(home_.Hone(With({"best"}, c.words)).code, 3) << "the CPU was not tuned";
  EXPECT_EQ(Object({"jobs", "list"})["jobs"][0]["target"], target_);
}

void GpuWalk::Show(const Case& c) {
  const nlohmann::json shown = Object(With(With(With({"show"}, c.words), Target()), {"--code"}));
  for (const std::string& word : gpu_.code) {
    EXPECT_THAT(shown.value("code", ""), HasSubstr(word));
  }
  EXPECT_THAT(shown.value("program", ""), HasSubstr("blockIdx"));
  EXPECT_THAT(shown.value("trace", ""), HasSubstr("trace 1"));
  const Result compared = home_.Hone(With(With({"compare"}, c.words), Target()));
  EXPECT_EQ(compared.code, 0) << compared.errors;
  EXPECT_THAT(compared.output, HasSubstr(target_));
}

// Compiles the exported program, which computes the right output.
void GpuWalk::Export(const Case& c) {
  const std::string out = folder_ / "out", name = c.words[0];
  const Result exported = home_.Hone(With(With({"export", "-o", out}, c.words), Target()));
  ASSERT_EQ(exported.code, 0) << exported.errors;
  for (const std::string& suffix :
       With(gpu_.files, {".json", ".h", "_host.c", ".hone", ".trace", ".program"})) {
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(out, "/", name, suffix))) << suffix;
  }
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(out, "/", name, ".so")));
  EXPECT_FALSE(std::filesystem::exists(out + "/lookup"));
  const nlohmann::json launches = nlohmann::json::parse(
      ReadFile(absl::StrCat(out, "/", name, ".json")).value_or(""), nullptr, false);
  EXPECT_EQ(launches.value("kind", ""), gpu_.interface);
  EXPECT_EQ(launches.value("arguments", 0), static_cast<int>(c.inputs.size()) + 1);

  const std::string program = absl::StrCat(out, "/", name, "_host");
  const Result compiled = RunProgram(
      {"/usr/bin/cc", "-Wall", "-Wextra", "-Werror", program + ".c", "-o", program, "-ldl"});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  Words command = {program, absl::StrCat(out, "/", name, gpu_.files[0])};
  for (const Array& input : c.inputs) {
    command.push_back(File(folder_, input.name + ".bin", Bytes(input.values)));
  }
  command.push_back(folder_ / "output.bin");
  const Result ran = RunProgram(command);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, HasSubstr("us for each call"));
  ExpectClose(FromBytes(ReadFile(folder_ / "output.bin").value_or("")), c.output.values);
}

void GpuWalk::Run(const Case& c) {
  Words words = With(With({"run"}, c.words), Target());
  for (const Array& input : c.inputs) {
    words.insert(words.end(), {"--in", File(folder_, input.name + ".npy", input.Npy())});
  }
  words.insert(words.end(), {"--out", folder_ / "output.npy"});
  const Result ran = home_.Hone(words);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, HasSubstr("best known kernel"));
  const std::string bytes = ReadFile(folder_ / "output.npy").value_or("");
  HONE_ASSERT_OK_AND_ASSIGN(const auto array, client::ParseNpy(bytes));
  ExpectClose(FromBytes(array.data), c.output.values);
}

// The trace of the best, taken as a handwritten schedule, passes the check.
void GpuWalk::Check(const Case& c) {
  const nlohmann::json shown = Object(With(With(With({"show"}, c.words), Target()), {"--trace"}));
  const std::string file = File(folder_, "mine.trace", shown.value("trace", ""));
  const nlohmann::json checked = Object(With({"schedule", file, "--check"}, Target()));
  EXPECT_EQ(checked["checked"], true);
  EXPECT_EQ(checked["target"], target_);
}

void GpuWalk::WalkNetwork() {
  const Array pixels = Input("Input3", {1, 1, 28, 28}, 17);
  const Array scores = {"Plus214_Output_0", {1, 10}, Interpreted(kMnist, pixels.values)};
  const std::string input = File(folder_, "input.npy", pixels.Npy());
  const std::string expected = File(folder_, "expected.npy", scores.Npy());
  const std::string output = folder_ / "output.npy";
  const Words run =
      With({"run", kMnist, "--in", input, "--out", output, "--expect", expected, "--repeat", "3"},
           Target());

  // Without measurements, and then with the best kernels.
  EXPECT_EQ(home_.Hone(run).code, 3) << "nothing is known yet";
  const auto expect_right = [&](const Words& words) {
    std::filesystem::remove(output);
    const nlohmann::json report = Object(words);
    EXPECT_LT(report.value("max_error", 1.0), 1e-5) << report;
    EXPECT_GT(report["latency_ns"]["median"], 0) << report;
    const std::string bytes = ReadFile(output).value_or("");
    HONE_ASSERT_OK_AND_ASSIGN(const auto array, client::ParseNpy(bytes));
    ExpectClose(FromBytes(array.data), scores.values);
  };
  expect_right(With(run, {"--draft"}));
  const nlohmann::json tuned = Object(With({"tune", kMnist, "--trials", "5"}, Target()));
  EXPECT_THAT(tuned.value("target", ""), StartsWith(gpu_.key));
  EXPECT_EQ(tuned["tasks"].size(), 5u);
  EXPECT_GT(tuned["latency_ns"], 0) << "the whole network is timed on the device: " << tuned;
  const nlohmann::json best = Object(With({"best", kMnist}, Target()));
  EXPECT_EQ(best["known"], 5);
  EXPECT_EQ(best["target"], tuned["target"]);
  EXPECT_EQ(home_.Hone({"best", kMnist}).code, 3) << "the CPU was not tuned";
  expect_right(run);
  const nlohmann::json profiled = Object(With(run, {"--profile"}));
  EXPECT_EQ(profiled["steps"].size(), 5u) << profiled;
  for (const nlohmann::json& step : profiled["steps"]) EXPECT_GT(step["latency_ns"], 0) << step;

  // On a busy machine, the measurement may be disturbed.
  const Words check =
      With({"check", kMnist, "--baseline", folder_ / "base.json", "--time", "0.1s"}, Target());
  const nlohmann::json saved = Object(With(check, {"--save", "--even-if-disturbed"}));
  EXPECT_EQ(saved["target"], tuned["target"]);
  EXPECT_EQ(saved["threads"], 0);
  EXPECT_TRUE(saved.value("saved", false)) << saved;

  const std::string out = folder_ / "network";
  const Result exported =
      home_.Hone(With({"export", kMnist, "-o", out, "--name", "net"}, Target()));
  ASSERT_EQ(exported.code, 0) << exported.errors;
  ExpectClose(CallExport(out, {pixels}), scores.values);
}

Floats GpuWalk::CallExport(const std::string& folder, const std::vector<Array>& inputs) {
  const std::string output = folder_ / "output.bin";
  std::filesystem::remove(output);
  Words words = {"/usr/bin/python3", "-c",
                 "import sys; sys.path.insert(0, sys.argv[1]); import net\n"
                 "arrays = []\n"
                 "for path, shape in zip(sys.argv[3::2], sys.argv[4::2]):\n"
                 "    shape = [int(extent) for extent in shape.split('x')]\n"
                 "    array = memoryview(open(path, 'rb').read())\n"
                 "    if net.numpy is None:\n"
                 "        arrays.append(array.cast('f', shape))\n"
                 "    else:\n"
                 "        arrays.append(net.numpy.frombuffer(array, 'float32').reshape(shape))\n"
                 "open(sys.argv[2], 'wb').write(net.Network()(*arrays)[0].tobytes())",
                 folder, output};
  for (const Array& input : inputs) {
    words.push_back(File(folder_, input.name + ".bin", Bytes(input.values)));
    words.push_back(absl::StrJoin(input.shape, "x"));
  }
  const Result ran = RunProgram(words);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  return FromBytes(ReadFile(output).value_or(""));
}

void GpuWalk::WalkOperatorSizes() {
  const Words words = {"matmul", "m=1,4", "n=32", "k=64"};
  const nlohmann::json tuned = Object(With(With({"tune", "--trials", "2"}, words), Target()));
  EXPECT_EQ(tuned["jobs"].size(), 2u) << tuned;
  const Result best = home_.Hone(With(With({"best"}, words), Target()));
  EXPECT_EQ(best.code, 0) << best.errors;
  const std::string out = folder_ / "operator";
  const nlohmann::json exported =
      Object(With(With({"export", "-o", out, "--name", "net"}, words), Target()));
  EXPECT_EQ(exported["sizes"].back(), nlohmann::json::parse(R"({"value": 4, "pads": true})"));
  EXPECT_FALSE(std::filesystem::exists(out + "/lookup")) << "it has kernels for CPUs";
  for (const int m : {1, 3, 4}) {
    const Case c = Matmul(m);
    ExpectClose(CallExport(out, c.inputs), c.output.values);
  }
}

void GpuWalk::WalkNetworkSizes() {
  const std::string model = File(folder_, "mlp.onnx", onnx::BytesOf(onnx::OpenMlp()));
  const nlohmann::json tuned =
      Object(With({"tune", model, "--shape", "N=1,4", "--trials", "4"}, Target()));
  EXPECT_EQ(tuned["sizes"].size(), 2u) << tuned;
  // Without --shape, the sizes of the job are used.
  EXPECT_EQ(Object(With({"best", model}, Target()))["sizes"].size(), 2u);
  const std::string out = folder_ / "sizes";
  const nlohmann::json exported =
      Object(With({"export", model, "-o", out, "--name", "net"}, Target()));
  EXPECT_EQ(exported["sizes"], nlohmann::json::parse(R"([{"value": 1, "pads": false},
                                                         {"value": 4, "pads": true}])"));
  for (const int n : {1, 3, 4}) {
    const Array x = Input("x", {n, 6}, 7);
    ExpectClose(CallExport(out, {x}), Interpreted(model, x.values, {.shapes = {{"N", {n}}}}));
  }
  const std::string input = File(folder_, "x.npy", Input("x", {4, 6}, 7).Npy());
  const Result ran = home_.Hone(With({"run", model, "--in", input}, Target()));
  EXPECT_EQ(ran.code, 0) << ran.errors;
}

}  // namespace hone::integration
