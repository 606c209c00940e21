// The whole workflow on CUDA, with the libraries of tests/fakes/cuda/libraries in place of
// NVIDIA's: NVRTC's compiles the kernels for this CPU, and the driver executes them thread by
// thread. The latencies are simulated.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/gpu_walk.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class CudaTest : public GpuWalk {
 protected:
  CudaTest()
      : GpuWalk({"cuda",
                 "nvptx64-sm_80-cuda-2c-",
                 {"__global__", "blockIdx"},
                 {".cubin", ".ptx", ".cu"}}) {
    setenv("LD_LIBRARY_PATH", FAKE_CUDA_DIR, 1);
    setenv("HONE_NVRTC", FAKE_CUDA_DIR "/libnvrtc.so.12", 1);
  }
  ~CudaTest() override {
    for (const char* variable : {"LD_LIBRARY_PATH", "HONE_NVRTC", "HONE_FAKE_CUDA"}) {
      unsetenv(variable);
    }
  }
  // See tests/fakes/cuda/libraries/faults.h.
  static void SetFaults(const char* words) { setenv("HONE_FAKE_CUDA", words, 1); }
};

TEST_F(CudaTest, DevicesAreListed) { ExpectListed(); }

TEST_F(CudaTest, MatmulFromTuningToItsExport) { Walk(Matmul()); }

TEST_F(CudaTest, SoftmaxFromTuningToItsExport) { Walk(Softmax()); }

TEST_F(CudaTest, ANetworkFromTuningToItsExport) { WalkNetwork(); }

TEST_F(CudaTest, SizesOfAnOperatorFromTuningToTheirExport) { WalkOperatorSizes(); }

TEST_F(CudaTest, SizesOfANetworkFromTuningToTheirExport) { WalkNetworkSizes(); }

// What the driver reports when a network runs.
TEST_F(CudaTest, FailuresOfANetworkAreExplained) {
  const std::string input = File(folder_, "input.npy", Input("Input3", {1, 1, 28, 28}, 3).Npy());
  const Words run = {"run",     "tests/client/network/onnx/testdata/mnist-8.onnx",
                     "--in",    input,
                     "--draft", "--target",
                     "cuda"};
  Transcript transcript("cuda_network");
  for (const char* faults : {"memory=40000", "fail=700", "fail=999"}) {
    SetFaults(faults);
    Result ran = home_.Hone(run);
    ran.errors.erase(0, ran.errors.find("hone: "));  // how far it is
    transcript.Add(absl::StrCat("HONE_FAKE_CUDA=", faults, " hone run mnist-8.onnx"), ran);
  }
  SetFaults("no_graphs");
  const Result ran = home_.Hone(run);
  EXPECT_EQ(ran.code, 0) << ran.errors;
}

// Scripts must not take a driver that fails for a server that cannot be reached.
TEST_F(CudaTest, AFailureOfTheDriverHasItsExitCode) {
  const Words relu = {"relu", "m=32", "n=64", "--target", "cuda"};
  const Result tuned = home_.Hone(With(With({"tune"}, relu), {"--trials", "4"}));
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  SetFaults("fail=999");
  const std::string input = File(folder_, "x.npy", Input("X", {32, 64}, 3).Npy());
  Transcript transcript("cuda_driver", {"hone"}, home_.variables());
  transcript.Run(With(With({"run"}, relu), {"--in", input, "--out", folder_ / "y.npy"}));
}

// A builder without a GPU feeds a worker that has one but cannot build.
TEST_F(CudaTest, ABuilderNeedsNoGpu) {
  const std::string address = "unix:" + (folder_ / "hone.sock");
  Process server({"hone-server", "--listen", address, "--store", folder_ / "hone.db",
                  "--ready-file", folder_ / "server.ready"});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ / "server.ready"); }))
      << server.Errors();
  Process gpu({"hone-worker", "--server", address, "--device", "cuda", "--run-only", "--name",
               "gpu", "--state-dir", folder_ / "gpu", "--ready-file", folder_ / "gpu.ready"});
  SetFaults("no_device");
  Process builder({"hone-worker", "--server", address, "--build-only", "--name", "builder",
                   "--state-dir", folder_ / "builder", "--ready-file", folder_ / "builder.ready"});
  ASSERT_TRUE(Eventually([&] {
    return std::filesystem::exists(folder_ / "gpu.ready") &&
           std::filesystem::exists(folder_ / "builder.ready");
  })) << gpu.Errors()
      << builder.Errors();
  // The name means the only CUDA target of the server.
  const nlohmann::json tuned = Object(
      {"--server", address, "tune", "relu", "m=32", "n=64", "--trials", "4", "--target", "cuda"});
  EXPECT_EQ(tuned["trials"], 4) << tuned;
  EXPECT_GT(tuned["outcomes"].value("ok", 0), 0) << tuned["outcomes"];
}

TEST_F(CudaTest, DraftsOfPresetsNeedNoDevice) {
  SetFaults("no_device");
  for (const char* target : {"nvidia/t4", "nvidia/a100", "nvidia/h100"}) {
    for (const Words& words :
         {Words{"matmul", "m=128", "n=128", "k=128"}, Words{"softmax", "m=64", "n=256"}}) {
      const nlohmann::json shown =
          Object(With(With({"show"}, words), {"--draft", "--code", "--target", target}));
      EXPECT_THAT(shown.value("code", ""), HasSubstr("__global__")) << target << words[0];
    }
  }
}

TEST_F(CudaTest, WhatIsWrongWithAMachineIsSaid) {
  const auto doctor = [&] { return home_.Hone({"doctor"}).output; };
  const Words tune = {"tune", "relu", "m=8", "n=8", "--target", "cuda"};
  Transcript transcript("cuda_machines", {"hone"}, home_.variables());
  SetFaults("no_device");
  EXPECT_THAT(doctor(), ContainsRegex("CUDA.*only needed for --target cuda"));
  transcript.Run(tune);
  SetFaults("sm=37");
  EXPECT_THAT(doctor(), ContainsRegex("cuda:0.*older than 7\\.5"));
  transcript.Run(tune);
  SetFaults("throttled");
  EXPECT_THAT(doctor(), HasSubstr("its clock is reduced"));
  SetFaults("");
  setenv("HONE_NVRTC", "/nowhere", 1);
  EXPECT_THAT(doctor(), ContainsRegex("NVRTC.*nvidia-cuda-nvrtc-cu12"));
}

}  // namespace
}  // namespace hone::integration
