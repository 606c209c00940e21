// How launches reach the driver: one by one, or as a graph that is recorded once.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/target/cuda/context.h"
#include "common/target/cuda/detect.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cuda {
namespace {

using ::testing::ElementsAre;

// What the driver has been asked to do; equal neighbors are counted.
struct Driver {
  std::vector<std::string> calls;
  std::map<std::string, int> counts;
  Result refuse_capture = 0, refuse_launch = 0;
  uint64_t memory = 0;
  int reserved = 0;  // shared memory of the function

  void Add(const std::string& call) {
    if (calls.empty() || calls.back() != call) calls.push_back(call);
    ++counts[call];
  }
  std::vector<std::string> Take() {
    std::vector<std::string> taken;
    for (const std::string& call : calls) taken.push_back(absl::StrCat(counts[call], " ", call));
    calls.clear();
    counts.clear();
    return taken;
  }
};
Driver driver;

char some_objects[4];
template <typename T>
void Give(T* object, int which) {
  *object = reinterpret_cast<T>(&some_objects[which]);
}

Api Table() {
  Api api;
  api.DeviceTotalMem = [](size_t* bytes, DeviceNumber) {
    *bytes = 1 << 30;
    return 0;
  };
  api.DeviceGetAttribute = [](int* value, int, DeviceNumber) {
    *value = 1024;
    return 0;
  };
  api.CtxCreate = [](Context* context, unsigned, DeviceNumber) {
    Give(context, 0);
    return 0;
  };
  api.CtxDestroy = [](Context) { return 0; };
  api.CtxSetCurrent = [](Context) { return 0; };
  api.ModuleLoadData = [](Module* module, const void*) {
    Give(module, 0);
    return 0;
  };
  api.ModuleUnload = [](Module) { return 0; };
  api.ModuleGetFunction = [](Function* function, Module, const char*) {
    Give(function, 0);
    return 0;
  };
  api.FuncGetAttribute = [](int* value, int attribute, Function) {
    *value = attribute == kFunctionMaxThreadsPerBlock      ? 1024
             : attribute == kFunctionMaxDynamicSharedBytes ? driver.reserved
                                                           : 0;
    return 0;
  };
  api.FuncSetAttribute = [](Function, int, int value) {
    driver.reserved = value;
    return 0;
  };
  api.MemAlloc = [](DevicePointer* pointer, size_t) {
    *pointer = driver.memory += 256;
    return 0;
  };
  api.MemFree = [](DevicePointer) { return 0; };
  api.EventCreate = [](Event* event, unsigned) {
    Give(event, 0);
    return 0;
  };
  api.EventDestroy = [](Event) { return 0; };
  api.EventRecord = [](Event, Stream) { return 0; };
  api.EventElapsedTime = [](float* milliseconds, Event, Event) {
    *milliseconds = 0;
    return 0;
  };
  api.StreamSynchronize = [](Stream) { return 0; };
  api.StreamCreate = [](Stream* stream, unsigned) {
    Give(stream, 1);
    return 0;
  };
  api.StreamDestroy = [](Stream) { return 0; };
  api.StreamBeginCapture = [](Stream, int) {
    driver.Add("capture");
    return driver.refuse_capture;
  };
  api.StreamEndCapture = [](Stream, Graph* graph) {
    Give(graph, 2);
    return 0;
  };
  api.GraphDestroy = [](Graph) { return 0; };
  api.GraphInstantiate = [](GraphExec* exec, Graph, unsigned long long) {
    Give(exec, 3);
    return 0;
  };
  api.GraphLaunch = [](GraphExec, Stream) {
    driver.Add("graph");
    return driver.refuse_launch;
  };
  api.GraphExecDestroy = [](GraphExec) {
    driver.Add("destroy");
    return 0;
  };
  api.LaunchKernel = [](Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, Stream stream, void**, void**) {
    driver.Add(stream == nullptr ? "launch" : "record");
    return 0;
  };
  return api;
}

class CudaProgramTest : public testing::Test {
 protected:
  CudaProgramTest() { driver = Driver(); }

  // Makes a program with this number of launches, whose only argument is in `memory`.
  // `shared_bytes` are those of the launches; the last ones need none.
  void Make(size_t launches, const std::vector<int64_t>& shared_bytes = {}) {
    DeviceFacts facts;
    facts.target.cores = 1;
    facts.target.gpu.max_threads = 1024;
    facts.target.gpu.shared_bytes = 160 << 10;
    HONE_ASSERT_OK_AND_ASSIGN(context_, CudaContext::Create(api_, facts));
    target::GpuModule module{.kind = target::Kind::kCuda, .arguments = 1, .code = "code"};
    for (size_t i = 0; i < launches; ++i) {
      module.launches.push_back({.kernel = "f",
                                 .grid = {1, 1, 1},
                                 .block = {32, 1, 1},
                                 .shared_bytes = i < shared_bytes.size() ? shared_bytes[i] : 0});
      order_.push_back(i);
    }
    HONE_ASSERT_OK_AND_ASSIGN(program_, context_->Load(module, "the code"));
    for (auto& memory : memory_) memory = *context_->Allocate(64, 0, 64);
    SetArgument(0);
  }
  void SetArgument(size_t which) {
    const target::GpuArgument argument = memory_[which].get();
    for (const size_t launch : order_) {
      ASSERT_THAT(program_->SetArguments(launch, {&argument, 1}), IsOk());
    }
  }
  std::vector<std::string> CallsOf(int64_t count) {
    driver.Take();
    const absl::StatusOr<double> ns = program_->Run(order_, count);
    EXPECT_THAT(ns, IsOk());
    return driver.Take();
  }

  const Api api_ = Table();
  std::unique_ptr<target::GpuContext> context_;
  std::unique_ptr<target::GpuMemory> memory_[2];
  std::unique_ptr<target::GpuProgram> program_;
  std::vector<size_t> order_;
};

TEST_F(CudaProgramTest, AFunctionKeepsTheMostSharedMemoryOfItsLaunches) {
  Make(4, {100'000, 60'000, 120'000, 50'000});
  EXPECT_EQ(driver.reserved, 120'000);
}

TEST_F(CudaProgramTest, FewLaunchesAreLaunchedByTheHost) {
  Make(1);
  EXPECT_THAT(CallsOf(1), ElementsAre("1 launch"));
  EXPECT_THAT(CallsOf(31), ElementsAre("31 launch"));
}

TEST_F(CudaProgramTest, ManyLaunchesAreAGraphThatIsRecordedOnce) {
  Make(1);
  EXPECT_THAT(CallsOf(70), ElementsAre("1 capture", "32 record", "2 graph", "6 launch"));
  EXPECT_THAT(CallsOf(32), ElementsAre("1 graph"));
  EXPECT_THAT(CallsOf(3), ElementsAre("3 launch"));
  SetArgument(0);
  EXPECT_THAT(CallsOf(64), ElementsAre("2 graph"));
}

TEST_F(CudaProgramTest, AGraphHasWholeRuns) {
  Make(5);
  EXPECT_THAT(CallsOf(6), ElementsAre("30 launch"));
  EXPECT_THAT(CallsOf(15), ElementsAre("1 capture", "35 record", "2 graph", "5 launch"));
}

TEST_F(CudaProgramTest, ARunOfManyLaunchesIsAGraph) {
  Make(40);
  EXPECT_THAT(CallsOf(2), ElementsAre("1 capture", "40 record", "2 graph"));
}

TEST_F(CudaProgramTest, OtherArgumentsNeedAnotherGraph) {
  Make(1);
  CallsOf(32);
  SetArgument(1);
  EXPECT_THAT(driver.Take(), ElementsAre("1 destroy"));
  EXPECT_THAT(CallsOf(32), ElementsAre("1 capture", "32 record", "1 graph"));
}

TEST_F(CudaProgramTest, ADriverWithoutGraphsGetsTheLaunches) {
  Make(1);
  driver.refuse_capture = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  EXPECT_THAT(CallsOf(70), ElementsAre("1 capture", "70 launch"));
  EXPECT_THAT(CallsOf(70), ElementsAre("70 launch"));
  EXPECT_FALSE(context_->lost());
}

TEST_F(CudaProgramTest, AGraphThatFailsIsAnError) {
  Make(1);
  driver.refuse_launch = 719;
  EXPECT_THAT(program_->Run(order_, 32), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(context_->lost());
}

}  // namespace
}  // namespace hone::cuda
