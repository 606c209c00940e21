#include "tests/fakes/cuda/libraries/fake_device.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hone::fakes {
namespace {

constexpr cuda::Result kInvalidValue = 1, kOutOfMemory = 2, kInvalidImage = 200, kNotFound = 500,
                       kLaunchFailed = 719;
constexpr int64_t kMaxThreads = 1024;
constexpr int kSharedBytes = 163 << 10, kUnitSharedBytes = 164 << 10;
constexpr size_t kAlignment = 256;

// The bytes of a shared object in memory: linkers put the table of sections at the end.
size_t SizeOfElf(const void* image) {
  const auto* const header = static_cast<const Elf64_Ehdr*>(image);
  return header->e_shoff + size_t{header->e_shnum} * header->e_shentsize;
}

// The parameters of the runner's reference kernels.
constexpr int kReferenceParameters = 3;
struct ReferenceArguments {
  float* out;
  const uint32_t* in;
  int32_t amount;
};

void MultiplyAdd(const ReferenceArguments& arguments, int64_t thread) {
  constexpr int kValues = 32;
  float values[kValues];
  for (int i = 0; i < kValues; ++i) values[i] = static_cast<float>(thread + i);
  for (int32_t n = 0; n < arguments.amount; ++n) {
    for (float& value : values) value = value * 0.999f + 0.001f;
  }
  for (int i = 0; i < kValues; ++i) arguments.out[4 * thread + i % 4] += values[i];
}

void Stream(const ReferenceArguments& arguments, int64_t thread, int64_t threads) {
  uint32_t sum = 0;
  for (int64_t i = thread; i < arguments.amount; i += threads) {
    for (int lane = 0; lane < 4; ++lane) sum ^= arguments.in[4 * i + lane];
  }
  std::memcpy(&arguments.out[4 * thread], &sum, sizeof(sum));
}

void RunReference(const std::string& name, int64_t threads, void* const* parameters) {
  ReferenceArguments arguments;
  std::memcpy(&arguments.out, parameters[0], sizeof(arguments.out));
  std::memcpy(&arguments.in, parameters[1], sizeof(arguments.in));
  std::memcpy(&arguments.amount, parameters[2], sizeof(arguments.amount));
  for (int64_t thread = 0; thread < threads; ++thread) {
    if (name == "hone_fma") {
      MultiplyAdd(arguments, thread);
    } else {
      Stream(arguments, thread, threads);
    }
  }
}

}  // namespace

FakeDriver& FakeDriver::Get() {
  static auto* const driver = new FakeDriver;
  return *driver;
}

int FakeDriver::Attribute(int attribute) const {
  const auto capability = static_cast<int>(faults.Number("sm", 80));
  switch (attribute) {
    case cuda::kMaxThreadsPerBlock:
    case cuda::kMaxBlockDimX:
    case cuda::kMaxBlockDimX + 1:
      return kMaxThreads;
    case cuda::kMaxBlockDimX + 2:
      return 64;
    case cuda::kMaxGridDimX:
      return 0x7fffffff;
    case cuda::kMaxGridDimX + 1:
    case cuda::kMaxGridDimX + 2:
      return 65535;
    case cuda::kMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cuda::kWarpSize:
      return 32;
    case cuda::kMultiprocessorCount:
      return static_cast<int>(faults.Number("units", 2));
    case cuda::kComputeMode:
      return faults.Has("prohibited") ? cuda::kComputeModeProhibited : 0;
    case cuda::kPciBusId:
      return 0x3b;
    case cuda::kL2CacheSize:
      return 4 << 20;
    case cuda::kMaxThreadsPerMultiprocessor:
      return 2048;
    case cuda::kComputeCapabilityMajor:
      return capability / 10;
    case cuda::kComputeCapabilityMinor:
      return capability % 10;
    case cuda::kMaxSharedMemoryPerMultiprocessor:
      return kUnitSharedBytes;
    case cuda::kMaxRegistersPerMultiprocessor:
      return 65536;
    case cuda::kMaxSharedMemoryPerBlockOptin:
      return kSharedBytes;
    default:
      return 0;
  }
}

cuda::Result FakeDriver::Load(const void* image, FakeModule** module) const {
  const std::lock_guard lock(turn_);
  const auto* const text = static_cast<const char*>(image);
  auto loaded = std::make_unique<FakeModule>();
  if (std::memcmp(text, ELFMAG, SELFMAG) == 0) {
    auto emulated = cuda::EmulatedModule::Load({text, SizeOfElf(image)});
    if (!emulated.ok()) {
      std::fprintf(stderr, "fake CUDA: %s\n", emulated.status().ToString().c_str());
      return kInvalidImage;
    }
    loaded->emulated = *std::move(emulated);
  } else if (!absl::StartsWith(text, ".version") || !absl::StrContains(text, ".entry hone_fma(")) {
    return kInvalidImage;
  }
  *module = loaded.release();
  return 0;
}

cuda::Result FakeDriver::Find(FakeModule& module, const char* name, FakeFunction** function) const {
  const std::lock_guard lock(turn_);
  const bool there = module.emulated != nullptr ? module.emulated->Parameters(name).ok()
                                                : absl::string_view(name) == "hone_fma" ||
                                                      absl::string_view(name) == "hone_stream";
  if (!there) return kNotFound;
  std::unique_ptr<FakeFunction>& found = module.functions[name];
  if (found == nullptr) {
    found = std::make_unique<FakeFunction>(FakeFunction{name, module.emulated.get()});
  }
  *function = found.get();
  return 0;
}

cuda::Result FakeDriver::Allocate(size_t bytes, cuda::DevicePointer* pointer) {
  const std::lock_guard lock(turn_);
  const auto most = static_cast<size_t>(faults.Number("memory", int64_t{1} << 30));
  if (bytes == 0) return kInvalidValue;
  if (used_bytes_ + bytes > most) return kOutOfMemory;
  void* const memory =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return kOutOfMemory;
  *pointer = reinterpret_cast<cuda::DevicePointer>(memory);
  allocations_[*pointer] = bytes;
  used_bytes_ += bytes;
  return 0;
}

cuda::Result FakeDriver::Free(cuda::DevicePointer pointer) {
  const std::lock_guard lock(turn_);
  const auto found = allocations_.find(pointer);
  if (found == allocations_.end()) return kInvalidValue;
  used_bytes_ -= found->second;
  allocations_.erase(found);
  std::free(reinterpret_cast<void*>(pointer));
  return 0;
}

bool FakeDriver::Holds(cuda::DevicePointer pointer, size_t bytes) const {
  const std::lock_guard lock(turn_);
  auto after = allocations_.upper_bound(pointer);
  if (after == allocations_.begin()) return false;
  --after;
  return pointer + bytes <= after->first + after->second;
}

FakeLaunch::FakeLaunch(const FakeFunction& function, const cuda::LaunchOptions& options,
                       void** parameters)
    : function_(&function), options_(options) {
  const int count = function.module == nullptr
                        ? kReferenceParameters
                        : function.module->Parameters(function.name).value_or(0);
  for (int i = 0; i < count; ++i) {
    std::memcpy(&values_.emplace_back(), parameters[i], sizeof(uint64_t));
  }
}

std::vector<void*> FakeLaunch::Parameters() {
  std::vector<void*> parameters;
  for (uint64_t& value : values_) parameters.push_back(&value);
  return parameters;
}

cuda::Result FakeDriver::Launch(FakeLaunch& launch) {
  const std::lock_guard lock(turn_);
  if (sticky_ != 0) return sticky_;
  const FakeFunction& function = launch.function();
  const cuda::LaunchOptions& options = launch.options();
  std::vector<void*> parameters = launch.Parameters();
  const int64_t threads = options.block[0] * options.block[1] * options.block[2];
  if (threads > kMaxThreads || options.dynamic_shared_bytes > function.max_dynamic_bytes) {
    return kInvalidValue;
  }
  if (function.module == nullptr) {
    RunReference(function.name, options.grid[0] * threads, parameters.data());
    return 0;
  }
  while (faults.Has("hang")) sleep(1);
  sticky_ = static_cast<cuda::Result>(faults.Number("fail", 0));
  if (sticky_ != 0) return 0;
  const absl::Status ran = function.module->Launch(function.name, options, parameters.data());
  if (ran.ok()) return 0;
  std::fprintf(stderr, "fake CUDA: kernel %s: %s\n", function.name.c_str(),
               std::string(ran.message()).c_str());
  sticky_ = kLaunchFailed;
  return 0;
}

}  // namespace hone::fakes
