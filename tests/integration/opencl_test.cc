// The whole workflow on the first OpenCL device, as a user runs it: list, tune, best, show, export,
// run, check. Skipped if there is none; presets need no device.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/lib/npy.h"
#include "common/base/file.h"
#include "common/ir/workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"

namespace hone::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Floats = std::vector<float>;

std::string Bytes(const Floats& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

Floats FromBytes(absl::string_view bytes) {
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// A tensor of a workload in a test.
struct Array {
  std::string name;
  ir::Shape shape;
  Floats values;

  std::string Npy() const { return client::NpyHeader(ir::DType::kF32, shape) + Bytes(values); }
};

// Values in [-1, 1] that differ from element to element.
Array Input(const std::string& name, const ir::Shape& shape, int step) {
  Array array{name, shape, Floats(ir::ElementsOf(shape))};
  for (size_t i = 0; i < array.values.size(); ++i) {
    array.values[i] = static_cast<float>(static_cast<int>(i * step % 201) - 100) / 100;
  }
  return array;
}

// An operator with inputs and the right output.
struct Case {
  Words words;
  std::vector<Array> inputs;
  Array output;
};

Case Matmul() {
  constexpr int kM = 48, kN = 32, kK = 64;
  Case c{{"matmul", "m=48", "n=32", "k=64"},
         {Input("A", {kM, kK}, 7), Input("B", {kK, kN}, 11)},
         {"C", {kM, kN}, Floats(kM * kN)}};
  for (int i = 0; i < kM * kN; ++i) {
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

void ExpectClose(const Floats& got, const Floats& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], wanted[i], 1e-5 + 1e-4 * std::abs(wanted[i])) << "element " << i;
  }
}

std::string File(const TemporaryFolder& folder, const std::string& name,
                 const std::string& content) {
  std::ofstream(folder / name, std::ios::binary) << content;
  return folder / name;
}

class OpenClTest : public ::testing::Test {
 protected:
  // Skips the test if there is no device.
  void NeedDevice() {
    const Result listed = RunProgram({"hone-worker", "--list-devices"});
    ASSERT_EQ(listed.code, 0) << listed.errors;
    if (!absl::StrContains(listed.output, "opencl:0")) GTEST_SKIP() << listed.output;
  }
  // The object that a successful command printed.
  nlohmann::json Object(const Words& words) {
    const Result result = home_.Hone(With(words, {"--json"}), absl::Minutes(10));
    EXPECT_EQ(result.code, 0) << words[0] << ": " << result.errors << result.output;
    const nlohmann::json object = OneLineOfJson(result.output);
    EXPECT_TRUE(object.is_object()) << words[0] << ": " << result.output;
    return object;
  }
  void ExpectError(int code, const Words& words, const ::testing::Matcher<std::string>& message) {
    const Result result = home_.Hone(words);
    EXPECT_EQ(result.code, code) << result.errors;
    EXPECT_THAT(result.errors, message);
    EXPECT_FALSE(std::filesystem::exists(home_.data_dir())) << "a server was started";
  }

  void Tune(const Case& c);
  void Show(const Case& c);
  void Export(const Case& c);
  void Run(const Case& c);
  void Check(const Case& c);
  void Walk(const Case& c) {
    Tune(c);
    if (HasFatalFailure()) return;
    Show(c);
    Export(c);
    Run(c);
    Check(c);
  }

  HoneHome home_;
  TemporaryFolder folder_;
  std::string target_;  // key
};

void OpenClTest::Tune(const Case& c) {
  const Words target = {"--target", "opencl"};
  EXPECT_EQ(home_.Hone(With(With({"best"}, c.words), target)).code, 3) << "nothing is known yet";
  const nlohmann::json tuned =
      Object(With(With({"tune", "--trials", "8", "--seed", "1"}, c.words), target));
  ASSERT_TRUE(tuned.is_object() && tuned["best"].is_object()) << tuned;
  target_ = tuned["target"];
  EXPECT_THAT(target_, StartsWith("opencl-"));
  EXPECT_EQ(tuned["trials"], 8);
  EXPECT_FALSE(tuned["outcomes"].contains("wrong_output")) << tuned["outcomes"];
  EXPECT_GT(tuned["outcomes"].value("ok", 0), 0) << tuned["outcomes"];
  EXPECT_EQ(tuned["best"]["confirmed"], true);

  // The best belongs to the device, whichever of its names is given, and to no other target.
  for (const std::string& name : {std::string("opencl"), std::string("opencl:0"), target_}) {
    const nlohmann::json best = Object(With(With({"best"}, c.words), {"--target", name}));
    EXPECT_EQ(best["target"], target_);
    EXPECT_EQ(best["best"]["latency_ns"], tuned["best"]["latency_ns"]);
  }
  EXPECT_EQ(home_.Hone(With({"best"}, c.words)).code, 3) << "the CPU was not tuned";
  EXPECT_EQ(Object({"jobs", "list"})["jobs"][0]["target"], target_);
}

void OpenClTest::Show(const Case& c) {
  const nlohmann::json shown =
      Object(With(With({"show"}, c.words), {"--target", "opencl", "--code"}));
  EXPECT_THAT(shown.value("code", ""), AllOf(HasSubstr("__kernel"), HasSubstr("get_group_id")));
  EXPECT_THAT(shown.value("program", ""), HasSubstr("blockIdx"));
  EXPECT_THAT(shown.value("trace", ""), HasSubstr("trace 1"));
  const Result compared = home_.Hone(With(With({"compare"}, c.words), {"--target", "opencl"}));
  EXPECT_EQ(compared.code, 0) << compared.errors;
  EXPECT_THAT(compared.output, HasSubstr(target_));
}

// Compiles the exported program, which computes the right output.
void OpenClTest::Export(const Case& c) {
  const std::string out = folder_ / "out", name = c.words[0];
  const Result exported =
      home_.Hone(With(With({"export", "-o", out}, c.words), {"--target", "opencl"}));
  ASSERT_EQ(exported.code, 0) << exported.errors;
  for (const char* suffix : {".cl", ".json", ".h", "_host.c", ".hone", ".trace", ".program"}) {
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(out, "/", name, suffix))) << suffix;
  }
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(out, "/", name, ".so")));
  EXPECT_FALSE(std::filesystem::exists(out + "/lookup"));
  const nlohmann::json launches = nlohmann::json::parse(
      ReadFile(absl::StrCat(out, "/", name, ".json")).value_or(""), nullptr, false);
  EXPECT_EQ(launches.value("kind", ""), "opencl");
  EXPECT_EQ(launches.value("arguments", 0), static_cast<int>(c.inputs.size()) + 1);

  const std::string program = absl::StrCat(out, "/", name, "_host");
  const Result compiled = RunProgram(
      {"/usr/bin/cc", "-Wall", "-Wextra", "-Werror", program + ".c", "-o", program, "-ldl"});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  Words command = {program, absl::StrCat(out, "/", name, ".cl")};
  for (const Array& input : c.inputs) {
    command.push_back(File(folder_, input.name + ".bin", Bytes(input.values)));
  }
  command.push_back(folder_ / "output.bin");
  const Result ran = RunProgram(command);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, HasSubstr("us for each call"));
  ExpectClose(FromBytes(ReadFile(folder_ / "output.bin").value_or("")), c.output.values);
}

void OpenClTest::Run(const Case& c) {
  Words words = With(With({"run"}, c.words), {"--target", "opencl"});
  for (const Array& input : c.inputs) {
    words.insert(words.end(), {"--in", File(folder_, input.name + ".npy", input.Npy())});
  }
  words.insert(words.end(), {"--out", folder_ / "output.npy"});
  const Result ran = home_.Hone(words);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, HasSubstr("best known kernel"));
  const std::string bytes = ReadFile(folder_ / "output.npy").value_or("");
  const auto array = client::ParseNpy(bytes);
  ASSERT_TRUE(array.ok()) << array.status();
  ExpectClose(FromBytes(array->data), c.output.values);
}

// The trace of the best, taken as a handwritten schedule, passes the check.
void OpenClTest::Check(const Case& c) {
  const nlohmann::json shown =
      Object(With(With({"show"}, c.words), {"--target", "opencl", "--trace"}));
  const std::string file = File(folder_, "mine.trace", shown.value("trace", ""));
  const nlohmann::json checked = Object({"schedule", file, "--check", "--target", "opencl"});
  EXPECT_EQ(checked["checked"], true);
  EXPECT_EQ(checked["target"], target_);
}

TEST_F(OpenClTest, DevicesAreListed) {
  NeedDevice();
  const Result listed = RunProgram({"hone-worker", "--list-devices"});
  EXPECT_THAT(listed.output, AllOf(StartsWith("cpu "), HasSubstr("\nopencl:0 "),
                                   HasSubstr(" opencl-"), HasSubstr("driver")));
  bool found = false;
  const nlohmann::json doctor = OneLineOfJson(home_.Hone({"doctor", "--json"}).output);
  for (const nlohmann::json& check : doctor["checks"]) {
    if (check["name"] != "opencl:0") continue;
    found = true;
    EXPECT_EQ(check["state"], "ok");
    EXPECT_THAT(check["finding"].get<std::string>(), HasSubstr("opencl-"));
  }
  EXPECT_TRUE(found) << doctor;
}

TEST_F(OpenClTest, MatmulFromTuningToItsExport) {
  NeedDevice();
  if (IsSkipped()) return;
  Walk(Matmul());
}

TEST_F(OpenClTest, SoftmaxFromTuningToItsExport) {
  NeedDevice();
  if (IsSkipped()) return;
  Walk(Softmax());
}

// A private server has workers of the CPU and of the device, and each job runs on its own.
TEST_F(OpenClTest, OneStoreServesTheCpuAndTheDevice) {
  NeedDevice();
  if (IsSkipped()) return;
  const Words relu = {"relu", "m=32", "n=64"};
  const nlohmann::json cpu = Object(With({"tune", "--trials", "4"}, relu));
  const nlohmann::json gpu = Object(With({"tune", "--trials", "4", "--target", "opencl"}, relu));
  EXPECT_NE(cpu["target"], gpu["target"]);
  EXPECT_EQ(Object(With({"best"}, relu))["best"]["record"], cpu["best"]["record"]);
  EXPECT_EQ(Object(With({"best", "--target", "opencl"}, relu))["best"]["record"],
            gpu["best"]["record"]);

  // Files of both kinds would have the same header.
  const std::string out = folder_ / "out";
  EXPECT_EQ(home_.Hone(With({"export", "-o", out}, relu)).code, 0);
  const Result clash = home_.Hone(With({"export", "-o", out, "--target", "opencl"}, relu));
  EXPECT_EQ(clash.code, 2) << clash.errors;
  EXPECT_THAT(clash.errors, AllOf(HasSubstr("relu.o is a kernel for a CPU"), HasSubstr("--name")));
  const Result named =
      home_.Hone(With({"export", "-o", out, "--target", "opencl", "--name", "relu_cl"}, relu));
  EXPECT_EQ(named.code, 0) << named.errors;
  EXPECT_TRUE(std::filesystem::exists(out + "/relu_cl.cl"));

  const Result again = home_.Hone(With({"revalidate", "--all", "--target", "opencl"}, relu));
  EXPECT_EQ(again.code, 0) << again.errors;
}

// The commands of the README's section, literally.
TEST_F(OpenClTest, CommandsOfTheReadme) {
  NeedDevice();
  if (IsSkipped()) return;
  const std::string readme = ReadFile("README.md").value_or("");
  const size_t begin = readme.find("```opencl\n");
  ASSERT_NE(begin, std::string::npos);
  const size_t first = readme.find('\n', begin) + 1;
  const std::string block = readme.substr(first, readme.find("```", first) - first);
  for (const char* name : {"A", "B"}) {
    File(folder_, absl::StrCat(name, ".npy"), Input(name, {512, 512}, 17).Npy());
  }
  const Result result =
      RunProgram({"/bin/sh", "-c",
                  absl::StrCat("set -e; cd ", folder_.path(), "; export PATH=",
                               std::filesystem::absolute(BinDir()).string(), ":$PATH\n", block)},
                 home_.variables(), absl::Minutes(14));
  EXPECT_EQ(result.code, 0) << result.errors << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("__kernel"), HasSubstr("us for each call")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "C.npy"));
}

// A team's server, with a worker for the device.
TEST_F(OpenClTest, AServerFindsTheDeviceOfItsWorker) {
  NeedDevice();
  if (IsSkipped()) return;
  const std::string address = "unix:" + (folder_ / "hone.sock");
  Process server({"hone-server", "--listen", address, "--store", folder_ / "hone.db",
                  "--ready-file", folder_ / "server.ready"});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ / "server.ready"); }))
      << server.Errors();
  Process worker({"hone-worker", "--server", address, "--device", "opencl", "--name", "gpu",
                  "--state-dir", folder_ / "gpu", "--ready-file", folder_ / "gpu.ready"});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ / "gpu.ready"); }))
      << worker.Errors();
  const nlohmann::json tuned = Object({"--server", address, "tune", "softmax", "m=16", "n=64",
                                       "--trials", "4", "--target", "opencl"});
  const std::string target = tuned["target"];
  EXPECT_THAT(target, StartsWith("opencl-"));
  const nlohmann::json workers = Object({"--server", address, "workers", "list"});
  EXPECT_EQ(workers["workers"][0]["target"], target);

  // On a machine without a device, the name means the only OpenCL target of the server.
  Variables variables = home_.variables();
  variables["OCL_ICD_VENDORS"] = folder_.path();
  const Result best = RunProgram({"hone", "--server", address, "best", "softmax", "m=16", "n=64",
                                  "--target", "opencl", "--json"},
                                 variables);
  EXPECT_EQ(best.code, 0) << best.errors;
  EXPECT_EQ(OneLineOfJson(best.output)["target"], target);
}

TEST_F(OpenClTest, DraftsOfPresetsNeedNoDevice) {
  for (const char* target : {"generic/opencl", "arm/mali-g610", "arm/mali-g52"}) {
    for (const Words& words :
         {Words{"matmul", "m=128", "n=128", "k=128"}, Words{"softmax", "m=64", "n=256"}}) {
      const nlohmann::json shown =
          Object(With(With({"show"}, words), {"--draft", "--code", "--target", target}));
      EXPECT_THAT(shown.value("code", ""), HasSubstr("__kernel")) << target << words[0];
      EXPECT_THAT(shown.value("program", ""), HasSubstr("threadIdx.x")) << target << words[0];
    }
  }
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir() + "/run/worker.log"));
}

TEST_F(OpenClTest, NetworksAreRefused) {
  for (const Words& words :
       {Words{"tune", "net.onnx"}, Words{"best", "net.onnx"},
        Words{"export", "net.onnx", "-o", folder_ / "out"}, Words{"run", "net.onnx"}}) {
    for (const char* target : {"opencl", "opencl:1", "generic/opencl"}) {
      ExpectError(1, With(words, {"--target", target}),
                  AllOf(HasSubstr("networks run on CPUs only"), HasSubstr("hone tune matmul")));
    }
  }
}

TEST_F(OpenClTest, UnknownDevicesAreRefused) {
  ExpectError(2, {"tune", "relu", "m=8", "n=8", "--target", "opencl:one"},
              HasSubstr("'opencl:one' is not the name of a device"));
  const Result worker = RunProgram({"hone-worker", "--server", "unix:" + (folder_ / "none.sock"),
                                    "--state-dir", folder_ / "worker", "--device", "toaster"});
  EXPECT_EQ(worker.code, 2) << worker.errors;
  EXPECT_THAT(worker.errors, HasSubstr("'toaster' is not the name of a device"));
  const Result alone =
      RunProgram({"hone-worker", "--list-devices", "--program-dir", folder_.path()});
  EXPECT_EQ(alone.code, 1);
  EXPECT_THAT(alone.errors, AllOf(HasSubstr("hone-runner"), HasSubstr("--program-dir")));
  NeedDevice();
  if (IsSkipped()) return;
  ExpectError(2, {"tune", "relu", "m=8", "n=8", "--target", "opencl:99"},
              AllOf(HasSubstr("opencl:99"), HasSubstr("opencl:0 (")));
  // A preset is no device of this machine.
  const Result preset = home_.Hone({"tune", "relu", "m=8", "n=8", "--target", "arm/mali-g52"});
  EXPECT_EQ(preset.code, 2) << preset.errors;
  EXPECT_THAT(preset.errors, AllOf(HasSubstr("--target arm/mali-g52"), HasSubstr("--server"),
                                   HasSubstr("--target opencl")));
}

// Without a driver the messages say so. The loader finds drivers by this folder.
TEST_F(OpenClTest, MachinesWithoutADriverSaySo) {
  Variables variables = home_.variables();
  variables["OCL_ICD_VENDORS"] = folder_.path();
  const Result listed = RunProgram({"hone-worker", "--list-devices"}, variables);
  EXPECT_EQ(listed.code, 0) << listed.errors;
  EXPECT_THAT(listed.output, AllOf(Not(HasSubstr("opencl:0")), HasSubstr("no OpenCL device")));
  const Result tuned =
      RunProgram({"hone", "tune", "relu", "m=8", "n=8", "--target", "opencl"}, variables);
  EXPECT_EQ(tuned.code, 1) << tuned.errors;
  EXPECT_THAT(tuned.errors, HasSubstr("no OpenCL device"));
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir())) << "a server was started";
  const Result doctor = RunProgram({"hone", "doctor"}, variables);
  EXPECT_THAT(doctor.output, AllOf(HasSubstr("OpenCL"), HasSubstr("only needed for")));
}

}  // namespace
}  // namespace hone::integration
