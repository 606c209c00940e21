// Networks that are exported for GPUs, run on an OpenCL device of this machine and by the fake
// driver of CUDA.

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/export/export.h"
#include "client/network/runtime/hone_network.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/network_devices.h"
#include "tests/client/network/test_network.h"
#include "tests/integration/process.h"
#include "tests/status.h"

namespace hone::network {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Device {
  const char* name;
  absl::StatusOr<target::Target> (*target)();
  const char* other;  // what its exports do without
};
void PrintTo(const Device& device, std::ostream* out) { *out << device.name; }

class GpuExportTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    const absl::StatusOr<target::Target> target = GetParam().target();
    if (!target.ok()) GTEST_SKIP() << target.status().message();
    target_ = *target;
  }

  std::string File(const std::string& name) const { return folder_ / ("out/" + name); }

  // Exports the network as "residual".
  void Export(const TestNetwork& network) {
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto files,
        ExportNetwork(
            network.graph, network.partition, network.kernels,
            {.folder = folder_ / "out", .name = "residual", .program_dir = integration::BinDir()}));
    EXPECT_EQ(files.size(), 6u);
  }

  // Runs a program that uses the export, with an input and the outputs of the interpreter.
  integration::Result Use(const std::vector<std::string>& program, const graph::Graph& graph,
                          const integration::Variables& variables) {
    std::vector<std::string> tensors = MakeInputs(graph), words = program;
    for (const std::string& output : Expected(graph, tensors)) tensors.push_back(output);
    for (const std::string& tensor : tensors) {
      words.push_back(folder_ / absl::StrCat("tensor", words.size()));
      EXPECT_THAT(WriteFileAtomically(words.back(), tensor), IsOk());
    }
    integration::Variables all = variables;
    all.try_emplace("LD_LIBRARY_PATH", FakeCudaFolder());
    return integration::RunProgram(words, all);
  }

  // Compiles a program around the export.
  std::string Compiled(const std::vector<std::string>& compiler, const std::string& source) {
    const std::string program = folder_ / "program";
    std::vector<std::string> words = compiler;
    for (const std::string& word :
         {std::string("-Wall"), std::string("-Wextra"), std::string("-Werror"), std::string("-I"),
          folder_ / "out", std::string("-o"), program,
          absl::StrCat("tests/client/network/export/", source), std::string("-L"), folder_ / "out",
          std::string("-lresidual"), std::string("-pthread"),
          absl::StrCat("-Wl,-rpath,", folder_ / "out")}) {
      words.push_back(word);
    }
    const integration::Result compiled = integration::RunProgram(words);
    EXPECT_EQ(compiled.code, 0) << compiled.errors;
    return program;
  }

  target::Target target_;
  TemporaryFolder folder_;
};

TEST_P(GpuExportTest, ProgramsRunItLikeThatOfACpu) {
  const TestNetwork network = Compile(Residual(), {.fuse = false, .pack = true, .target = target_});
  Export(network);
  const std::string c = Compiled({"/usr/bin/cc", "-std=c11"}, "use_network.c");
  const auto expect_right = [](const char* language, const integration::Result& ran) {
    SCOPED_TRACE(language);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    EXPECT_EQ(ran.output, "right\n");
  };
  expect_right("C", Use({c, File("residual.weights")}, network.graph, {}));
  expect_right("C", Use({c, File("residual.weights")}, network.graph, {{"HONE_DEVICE", "0"}}));
  const integration::Result absent =
      Use({c, File("residual.weights")}, network.graph, {{"HONE_DEVICE", "77"}});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.output, HasSubstr("77; this machine has "));
  const std::string cxx = Compiled({"/usr/bin/c++", "-std=c++17"}, "use_network.cc");
  expect_right("C++", Use({cxx, File("residual.weights")}, network.graph, {}));
  expect_right("Python", Use({"/usr/bin/python3", "tests/client/network/export/use_network.py",
                              folder_ / "out"},
                             network.graph, {}));
}

TEST_P(GpuExportTest, NeedsTheCLibraryAloneAndHasOneDriver) {
  Export(Compile(Residual(), {.target = target_}));
  const integration::Result needed =
      integration::RunProgram({"/usr/bin/readelf", "-d", File("libresidual.so")});
  EXPECT_THAT(needed.output, HasSubstr("[libc.so.6]"));
  EXPECT_THAT(needed.output, Not(HasSubstr("libOpenCL")));
  EXPECT_THAT(ReadFile(File("libresidual.so")).value_or(""), Not(HasSubstr(GetParam().other)));
}

TEST_P(GpuExportTest, SaysWhenThereIsNoDriver) {
  const TestNetwork network = Compile(Residual(), {.fuse = true, .target = target_});
  Export(network);
  const std::string program = Compiled({"/usr/bin/cc", "-std=c11"}, "use_network.c");
  const integration::Result ran =
      Use({program, File("residual.weights")}, network.graph,
          {{"LD_LIBRARY_PATH", "/no/driver"}, {"OCL_ICD_VENDORS", "/no/driver"}});
  if (ran.code == 0) GTEST_SKIP() << "this machine has a driver elsewhere";
  EXPECT_THAT(ran.output, HasSubstr("install"));
}

// A function of the exported network, in this process.
#define CALL(library, name) \
  reinterpret_cast<decltype(&hone_network_##name)>(dlsym(library, "residual_" #name))

TEST_P(GpuExportTest, TensorsMayBeEmptyAndHaveAnyName) {
  graph::Graph graph = Residual();
  const graph::TensorType empty{ir::DType::kF32, {0, 3}};
  graph.inputs.push_back(graph.AddValue("*/ *\\ \xff \"", empty));
  graph.outputs.insert(
      graph.outputs.begin(),
      {graph.inputs[1], graph.AddConstant("nothing", empty, graph::ConstantData(""))});
  Export(Compile(graph, {.target = target_}));
  void* const library = dlopen(File("libresidual.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  hone_network* network = nullptr;
  hone_network_instance* instance = nullptr;
  ASSERT_EQ(CALL(library, open_on)(File("residual.weights").c_str(), 0, &network), 0)
      << CALL(library, error)();
  ASSERT_EQ(CALL(library, new_instance)(network, nullptr, &instance), 0) << CALL(library, error)();
  EXPECT_GT(CALL(library, instance_bytes)(instance), 0);
  const std::vector<std::string> inputs = MakeInputs(graph), expected = Expected(graph, inputs);
  std::vector<std::string> outputs = expected;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const std::string& input : inputs) in.push_back(input.data());
  for (std::string& output : outputs) {
    output.assign(output.size(), '?');
    out.push_back(output.data());
  }
  EXPECT_EQ(CALL(library, run)(instance, in.data(), out.data()), 0) << CALL(library, error)();
  EXPECT_EQ(outputs, expected);
  CALL(library, free_instance)(instance);
  CALL(library, close)(network);
}

TEST_P(GpuExportTest, WeightsOfAnotherNetworkAndDamagedOnesAreRefused) {
  Export(Compile(Residual(), {.target = target_}));
  void* const library = dlopen(File("libresidual.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const std::string weights = ReadFile(File("residual.weights")).value_or("");
  const auto refusal = [&](size_t changed) {
    std::string bytes = weights;
    bytes[changed] ^= 1;
    EXPECT_THAT(WriteFileAtomically(File("residual.weights"), bytes), IsOk());
    hone_network* network = nullptr;
    EXPECT_EQ(CALL(library, open)(File("residual.weights").c_str(), &network),
              HONE_NETWORK_BAD_FILE);
    return std::string(CALL(library, error)());
  };
  EXPECT_THAT(refusal(24), HasSubstr("belongs to another export")) << "its id";
  EXPECT_THAT(refusal(weights.size() - 1), HasSubstr("are not those of the export"));
}

INSTANTIATE_TEST_SUITE_P(All, GpuExportTest,
                         testing::Values(Device{"fake_cuda", FakeCudaTarget, "libOpenCL.so.1"},
                                         Device{"opencl", OpenClTarget, "libcuda.so.1"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::network
