// The whole workflow on the first OpenCL device, as a user runs it: list, tune, best, show, export,
// run, check. Kernels run and are checked on the device; their latencies are simulated. Tests that
// need a device are skipped on a machine without one.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "tests/integration/gpu_walk.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class OpenClTest : public GpuWalk {
 protected:
  OpenClTest() : GpuWalk({"opencl", "opencl-", {"__kernel", "get_group_id"}, {".cl"}}) {}
};

TEST_F(OpenClTest, DevicesAreListed) {
  NeedDevice();
  if (IsSkipped()) return;
  ExpectListed();
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

// The laboratory measures a sample on the device and judges the draft of GPUs with it.
TEST_F(OpenClTest, TheLaboratoryCollectsAndJudges) {
  NeedDevice();
  if (IsSkipped()) return;
  const std::string list = folder_ / "tasks.txt", sample = folder_ / "sample.h5";
  ASSERT_TRUE(WriteFileAtomically(list, "relu m=32 n=64\n").ok());
  const Result collected = RunProgram(
      {"hone-lab", "collect", "--tasks", list, "--work", folder_ / "work", "--out", sample,
       "--target", "opencl", "--uniform", "4", "--drafted", "2", "--searched", "2"},
      home_.variables(), absl::Minutes(4));
  ASSERT_EQ(collected.code, 0) << collected.errors;
  const Result judged = RunProgram({"hone-lab", "judge", sample, "--cost-model", "presets",
                                    "--cost-model", "draft", "--cost-model", "residual"},
                                   home_.variables());
  EXPECT_EQ(judged.code, 0) << judged.errors;
  EXPECT_THAT(judged.output, ContainsRegex("candidates of 1 tasks on "));
  for (const char* const row : {"| presets | ", "| draft | ", "| residual | "})
    EXPECT_THAT(judged.output, HasSubstr(row));
  EXPECT_THAT(judged.output, Not(HasSubstr("do not replay")));
}

// A private server has workers of the CPU and of the device, and each job runs on its own.
TEST_F(OpenClTest, OneStoreServesTheCpuAndTheDevice) {
  NeedDevice();
  if (IsSkipped()) return;
  const Words relu = {"relu", "m=32", "n=64"};
  const nlohmann::json cpu = Object(With({"tune", "--trials", "2"}, relu));
  const nlohmann::json gpu = Object(With({"tune", "--trials", "2", "--target", "opencl"}, relu));
  EXPECT_NE(cpu["target"], gpu["target"]);
  EXPECT_EQ(Object(With({"best"}, relu))["best"]["record"], cpu["best"]["record"]);
  EXPECT_EQ(Object(With({"best", "--target", "opencl"}, relu))["best"]["record"],
            gpu["best"]["record"]);

  // Files of both kinds would have the same header.
  const std::string out = folder_ / "out";
  EXPECT_EQ(home_.Hone(With({"export", "-o", out}, relu)).code, 0);
  Transcript transcript("opencl_clash", {"hone"}, home_.variables());
  transcript.Replace(cpu["target"], "CPU");
  transcript.Replace(gpu["target"], "GPU");
  transcript.Run(With({"export", "-o", out, "--target", "opencl"}, relu));
  const Result named =
      home_.Hone(With({"export", "-o", out, "--target", "opencl", "--name", "relu_cl"}, relu));
  EXPECT_EQ(named.code, 0) << named.errors;
  EXPECT_TRUE(std::filesystem::exists(out + "/relu_cl.cl"));

  const Result again = home_.Hone(With({"revalidate", "--all", "--target", "opencl"}, relu));
  EXPECT_EQ(again.code, 0) << again.errors;
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
                                       "--trials", "2", "--target", "opencl"});
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

TEST_F(OpenClTest, ANetworkFromTuningToItsExport) {
  NeedDevice();
  if (IsSkipped()) return;
  setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 1);  // PoCL then compiles much faster
  WalkNetwork();
  unsetenv("POCL_EXTRA_BUILD_FLAGS");
}

TEST_F(OpenClTest, SizesOfANetworkFromTuningToTheirExport) {
  NeedDevice();
  if (IsSkipped()) return;
  setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 1);  // PoCL then compiles much faster
  WalkNetworkSizes();
  unsetenv("POCL_EXTRA_BUILD_FLAGS");
}

// The draft of a network for a preset is no kernel for this device.
TEST_F(OpenClTest, NetworksForOtherDevicesAreRefused) {
  NeedDevice();
  if (IsSkipped()) return;
  const std::string input = File(folder_, "input.npy", Input("Input3", {1, 1, 28, 28}, 3).Npy());
  const Words run = {"run", "tests/client/network/onnx/testdata/mnist-8.onnx", "--in", input,
                     "--draft"};
  const Result other = home_.Hone(With(run, {"--target", "arm/mali-g52"}));
  EXPECT_EQ(other.code, 1) << other.errors;
  EXPECT_THAT(other.errors, ContainsRegex("the kernel is for opencl-.*mali-g52.*"
                                          "the OpenCL devices of this machine are"));
}

TEST_F(OpenClTest, UnknownDevicesAreRefused) {
  {
    Transcript transcript("opencl_devices", {}, home_.variables());
    transcript.Run({"hone", "tune", "relu", "m=8", "n=8", "--target", "opencl:one"});
    transcript.Run({"hone-worker", "--list-devices", "--program-dir", folder_.path()});
  }
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir())) << "a server was started";
  const Result worker = RunProgram({"hone-worker", "--server", "unix:" + (folder_ / "none.sock"),
                                    "--state-dir", folder_ / "worker", "--device", "toaster"});
  EXPECT_EQ(worker.code, 2) << worker.errors;
  EXPECT_THAT(worker.errors, HasSubstr("'toaster' is not the name of a device"));
  NeedDevice();
  if (IsSkipped()) return;
  ExpectError(2, {"tune", "relu", "m=8", "n=8", "--target", "opencl:99"},
              ContainsRegex("opencl:99.*opencl:0 \\("));
  // A preset is no device of this machine.
  const Result preset = home_.Hone({"tune", "relu", "m=8", "n=8", "--target", "arm/mali-g52"});
  EXPECT_EQ(preset.code, 2) << preset.errors;
  EXPECT_THAT(preset.errors, ContainsRegex("--target arm/mali-g52.*--server.*--target opencl"));
}

// Without a driver the messages say so. The loader finds drivers by this folder.
TEST_F(OpenClTest, MachinesWithoutADriverSaySo) {
  Variables variables = home_.variables();
  variables["OCL_ICD_VENDORS"] = folder_.path();
  const Result listed = RunProgram({"hone-worker", "--list-devices"}, variables);
  EXPECT_EQ(listed.code, 0) << listed.errors;
  EXPECT_THAT(listed.output, HasSubstr("no OpenCL device"));
  EXPECT_THAT(listed.output, Not(HasSubstr("opencl:0")));
  const Result tuned =
      RunProgram({"hone", "tune", "relu", "m=8", "n=8", "--target", "opencl"}, variables);
  EXPECT_EQ(tuned.code, 1) << tuned.errors;
  EXPECT_THAT(tuned.errors, HasSubstr("no OpenCL device"));
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir())) << "a server was started";
  const Result doctor = RunProgram({"hone", "doctor"}, variables);
  EXPECT_THAT(doctor.output, ContainsRegex("OpenCL.*only needed for"));
}

}  // namespace
}  // namespace hone::integration
