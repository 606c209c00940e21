// Networks that are exported for OpenCL, run by their host programs on a device of this machine.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/export/export.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/network/network_devices.h"
#include "tests/client/network/test_network.h"
#include "tests/integration/process.h"

namespace hone::network {
namespace {

using ::testing::HasSubstr;

class GpuExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<target::Target> target = OpenClTarget();
    if (!target.ok()) GTEST_SKIP() << target.status().message();
    target_ = *target;
  }

  std::string File(const std::string& name) const { return folder_ / ("out/" + name); }

  void Export(const TestNetwork& network) {
    const auto files = ExportNetwork(network.graph, network.partition, network.kernels,
                                     {.folder = folder_ / "out", .name = "net"});
    ASSERT_TRUE(files.ok()) << files.status();
    for (const ExportedFile& file : *files) {
      EXPECT_TRUE(std::filesystem::exists(file.path)) << file.path;
    }
    const integration::Result compiled =
        integration::RunProgram({"/usr/bin/cc", "-std=c11", "-Wall", "-Wextra", "-Werror",
                                 File("net_host.c"), "-o", File("net_host"), "-ldl"});
    ASSERT_EQ(compiled.code, 0) << compiled.errors;
  }

  integration::Result RunHost(const std::vector<std::string>& files) {
    std::vector<std::string> command = {File("net_host"), folder_ / "out"};
    command.insert(command.end(), files.begin(), files.end());
    return integration::RunProgram(command);
  }

  // Exports the network, and compares what its program computes with the interpreter.
  void ExpectRight(const TestNetwork& network) {
    Export(network);
    if (HasFatalFailure()) return;
    const std::vector<std::string> inputs = MakeInputs(network.graph);
    const std::vector<std::string> expected = Expected(network.graph, inputs);
    std::vector<std::string> files;
    for (size_t i = 0; i < inputs.size() + expected.size(); ++i) {
      files.push_back(folder_ / absl::StrCat("tensor", i));
      if (i >= inputs.size()) continue;
      ASSERT_TRUE(WriteFileAtomically(files[i], inputs[i]).ok());
    }
    const integration::Result ran = RunHost(files);
    ASSERT_EQ(ran.code, 0) << ran.errors;
    EXPECT_THAT(ran.output, HasSubstr("us for each run"));
    for (size_t o = 0; o < expected.size(); ++o) {
      EXPECT_EQ(ReadFile(files[inputs.size() + o]).value_or(""), expected[o]) << "output " << o;
    }
  }

  // The files of the export by their paths.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "out")) {
      if (entry.is_regular_file()) contents[entry.path()] = ReadFile(entry.path()).value_or("");
    }
    return contents;
  }

  target::Target target_;
  integration::TemporaryFolder folder_;
};

TEST_F(GpuExportTest, TheHostProgramRunsTheNetwork) {
  graph::Graph graph = Residual();
  graph.outputs.push_back(graph.inputs[0]);  // which is copied
  ExpectRight(Compile(graph, {.fuse = false, .target = target_}));
  const auto json = nlohmann::json::parse(ReadFile(File("net.json")).value_or(""), nullptr, false);
  EXPECT_EQ(json.value("kind", ""), "opencl");
  EXPECT_EQ(json["steps"].size(), 6u);
  EXPECT_EQ(json["inputs"][0]["shape"], (std::vector<int>{4, 8}));
  EXPECT_TRUE(json["packing"].empty());
}

TEST_F(GpuExportTest, TheHostProgramPacksConstants) {
  ExpectRight(Compile(Residual(), {.fuse = true, .pack = true, .target = target_}));
  const auto json = nlohmann::json::parse(ReadFile(File("net.json")).value_or(""), nullptr, false);
  EXPECT_FALSE(json["packing"].empty());
}

TEST_F(GpuExportTest, AnExportReplacesOnlyKernelsOfAnEarlierOne) {
  Export(Compile(Residual(), {.fuse = false, .target = target_}));
  const std::map<std::string, std::string> before = Contents();
  const std::string notes = File("net_kernels/900_notes.cl");
  ASSERT_TRUE(WriteFileAtomically(notes, "").ok());
  const TestNetwork fused = Compile(Residual(), {.target = target_});
  Export(fused);
  EXPECT_TRUE(std::filesystem::exists(notes)) << "is no file of an export";
  size_t kernels = 0;
  for (const auto& file : std::filesystem::directory_iterator(File("net_kernels"))) {
    kernels += file.path() != notes;
  }
  EXPECT_EQ(kernels, fused.kernels.size()) << "of " << before.size() << " files before";
}

TEST_F(GpuExportTest, AFailedExportLeavesTheEarlierOne) {
  const TestNetwork first = Compile(Residual(), {.fuse = false, .target = target_});
  const TestNetwork second = Compile(Residual(), {.target = target_});
  // The kernels of the second network cannot be written: folders have their names.
  const auto elsewhere = ExportNetwork(second.graph, second.partition, second.kernels,
                                       {.folder = folder_ / "elsewhere", .name = "net"});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  Export(first);
  const std::string last = (*elsewhere)[second.kernels.size() - 1].path;
  const std::string in_the_way =
      File("net_kernels/" + std::filesystem::path(last).filename().string());
  ASSERT_NE(in_the_way, last);
  std::filesystem::remove(in_the_way);
  std::filesystem::create_directories(in_the_way + "/folder");
  const std::map<std::string, std::string> before = Contents();
  const absl::Status failed = ExportNetwork(second.graph, second.partition, second.kernels,
                                            {.folder = folder_ / "out", .name = "net"})
                                  .status();
  EXPECT_THAT(std::string(failed.message()), HasSubstr("net_kernels"));
  EXPECT_EQ(Contents(), before);
}

TEST_F(GpuExportTest, TensorsMayBeEmptyAndHaveAnyName) {
  graph::Graph graph = Residual();
  const graph::TensorType empty{ir::DType::kF32, {0, 3}};
  graph.inputs.push_back(graph.AddValue("*/ *\\ \xff \"", empty));
  graph.outputs.insert(
      graph.outputs.begin(),
      {graph.inputs[1], graph.AddConstant("nothing", empty, graph::ConstantData(""))});
  ExpectRight(Compile(graph, {.target = target_}));
}

TEST_F(GpuExportTest, WeightsOfAnotherNetworkAreRefused) {
  Export(Compile(Residual(), {.target = target_}));
  std::string weights = ReadFile(File("net.weights")).value_or("");
  weights[24] ^= 1;  // in the id
  ASSERT_TRUE(WriteFileAtomically(File("net.weights"), weights).ok());
  const integration::Result ran = RunHost({});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.errors, HasSubstr("net.weights belongs to another network"));
  EXPECT_EQ(RunHost({"one"}).code, 2);
}

}  // namespace
}  // namespace hone::network
