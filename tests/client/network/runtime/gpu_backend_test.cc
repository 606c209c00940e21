// What the runtime refuses and accepts of plans and buffers, with the fake driver of CUDA.

#include <filesystem>

#include "client/network/plan/plan.h"
#include "client/network/plan/weights_file.h"
#include "client/network/runtime/gpu_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/network_devices.h"
#include "tests/client/network/test_network.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::network {
namespace {

using ::testing::HasSubstr;

// A network whose plan a test may change before it is opened.
class OpenedPlan {
 public:
  OpenedPlan(const TestNetwork& network, const HoneBackend& backend) : backend_(backend) {
    auto planned = MakePlan(network.graph, network.partition, network.kernels);
    EXPECT_THAT(planned, IsOk());
    if (!planned.ok()) return;
    EXPECT_THAT(WriteWeights({&network.graph}, network.kernels, weights_path_, *planned), IsOk());
    plan = planned->plan;
  }
  ~OpenedPlan() {
    hone_network_free_instance(instance_);
    hone_network_close(network_);
    std::filesystem::remove(weights_path_);
  }
  // Opens the network, and makes its instance.
  hone_network_status Open() {
    bytes_ = plan.Encode();
    program_ = {bytes_.data(), bytes_.size(), nullptr, 0, &backend_};
    const hone_network_status status =
        hone_network_open_program(&program_, weights_path_.c_str(), 0, &network_);
    return status == HONE_NETWORK_OK ? hone_network_new_instance(network_, nullptr, &instance_)
                                     : status;
  }
  hone_network_status Run(const std::vector<const void*>& inputs,
                          const std::vector<void*>& outputs) {
    return hone_network_run(instance_, inputs.data(), outputs.data());
  }
  // Replaces the launches of the first kernel.
  void SetLaunches(const std::vector<target::GpuLaunch>& launches) {
    auto module = std::make_shared<target::GpuModule>(*plan.kernels[0].module);
    const std::string function = module->launches[0].kernel;
    module->launches = launches;
    for (target::GpuLaunch& launch : module->launches) launch.kernel = function;
    plan.kernels[0].module = std::move(module);
  }

  Plan plan;

 private:
  const HoneBackend backend_;
  const std::string weights_path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string bytes_;
  hone_network_program program_ = {};
  hone_network* network_ = nullptr;
  hone_network_instance* instance_ = nullptr;
};

class GpuBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HONE_ASSERT_OK_AND_ASSIGN(const target::Target cuda, FakeCudaTarget());
    network_ = Compile(Residual(), {.fuse = false, .target = cuda});
  }
  TestNetwork network_;
};

// The driver of CUDA, but with larger parts.
hone_network_status OpenWithLargeParts(int32_t device, HoneGpu** gpu, HoneGpuLimits* limits) {
  const hone_network_status status = hone_cuda_driver.open(device, gpu, limits);
  limits->part_bytes = 4096;
  return status;
}

TEST_F(GpuBackendTest, DevicesThatNeedLargerPartsAreRefused) {
  HoneGpuDriver driver = hone_cuda_driver;
  driver.open = OpenWithLargeParts;
  HoneBackend backend = hone_cuda_backend;
  backend.driver = &driver;
  OpenedPlan opened(network_, backend);
  EXPECT_EQ(opened.Open(), HONE_NETWORK_DEVICE);
  EXPECT_THAT(hone_network_error(), HasSubstr("at multiples of 4096 bytes"));
}

TEST_F(GpuBackendTest, LaunchesBeyondTheLimitsOfTheDeviceAreRefused) {
  GoldenOfTest golden;
  golden.Name(network_.kernels[0].module->launches[0].kernel, "KERNEL");
  const auto open = [&](const target::GpuLaunch& launch) {
    OpenedPlan opened(network_, hone_cuda_backend);
    opened.SetLaunches({launch});
    return opened.Open();
  };
  EXPECT_EQ(open({.grid = {100000, 65535, 65535}, .block = {4, 4, 64}, .shared_bytes = 166912}),
            HONE_NETWORK_OK);
  for (const target::GpuLaunch& launch : std::vector<target::GpuLaunch>{{.block = {256, 8, 1}},
                                                                        {.block = {1, 1, 65}},
                                                                        {.grid = {1, 65536, 1}},
                                                                        {.grid = {1, 1, 65536}},
                                                                        {.shared_bytes = 166913}}) {
    EXPECT_EQ(open(launch), HONE_NETWORK_DEVICE);
    golden.Add(hone_network_error());
  }
}

TEST_F(GpuBackendTest, LaunchesOfOneFunctionMayHaveOtherSharedMemory) {
  OpenedPlan opened(network_, hone_cuda_backend);
  target::GpuLaunch more = network_.kernels[0].module->launches[0], less = more;
  more.shared_bytes = 100 << 10;
  less.shared_bytes = 60 << 10;
  opened.SetLaunches({more, less});
  ASSERT_EQ(opened.Open(), HONE_NETWORK_OK) << hone_network_error();
  const std::vector<std::string> inputs = MakeInputs(network_.graph);
  const std::vector<std::string> expected = Expected(network_.graph, inputs);
  std::vector<const void*> in;
  for (const std::string& input : inputs) in.push_back(input.data());
  std::vector<std::string> outputs = expected;
  std::vector<void*> out;
  for (std::string& output : outputs) {
    output.assign(output.size(), '?');
    out.push_back(output.data());
  }
  EXPECT_EQ(opened.Run(in, out), HONE_NETWORK_OK) << hone_network_error();
  EXPECT_EQ(outputs, expected);
}

// A copy of one empty tensor to another, on each kind of device.
TEST(HoneNetworkTest, BuffersOfEmptyTensorsMayBeNull) {
  TestNetwork network;
  graph::Graph& graph = network.graph;
  const graph::ValueId empty = graph.AddValue("empty", {ir::DType::kF32, {0, 3}});
  const graph::ValueId full = graph.AddValue("full", {ir::DType::kI32, {1}});
  graph.inputs = {empty, full};
  graph.outputs = {empty, full};
  ASSERT_THAT(FakeCudaTarget(), IsOk());
  for (const bool is_gpu : {false, true}) {
    SCOPED_TRACE(is_gpu);
    OpenedPlan opened(network, is_gpu ? hone_cuda_backend : hone_cpu_backend);
    opened.plan.is_gpu = is_gpu;
    ASSERT_EQ(opened.Open(), HONE_NETWORK_OK) << hone_network_error();
    alignas(64) int32_t in = 7;
    alignas(64) int32_t out = 0;
    EXPECT_EQ(opened.Run({nullptr, &in}, {nullptr, &out}), HONE_NETWORK_OK) << hone_network_error();
    EXPECT_EQ(out, 7);
    EXPECT_EQ(opened.Run({&in, &in}, {&out, &out}), HONE_NETWORK_OK) << hone_network_error();
    EXPECT_EQ(opened.Run({nullptr, nullptr}, {nullptr, &out}), HONE_NETWORK_INVALID_ARGUMENT);
    EXPECT_THAT(hone_network_error(), HasSubstr("input 1 is null"));
    EXPECT_EQ(opened.Run({nullptr, &in}, {nullptr, nullptr}), HONE_NETWORK_INVALID_ARGUMENT);
    EXPECT_THAT(hone_network_error(), HasSubstr("output 1 is null"));
  }
}

}  // namespace
}  // namespace hone::network
