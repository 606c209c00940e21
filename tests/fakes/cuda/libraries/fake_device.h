#ifndef HONE_TESTS_FAKES_CUDA_LIBRARIES_FAKE_DEVICE_H_
#define HONE_TESTS_FAKES_CUDA_LIBRARIES_FAKE_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/target/cuda/api.h"
#include "tests/fakes/cuda/emulated_module.h"
#include "tests/fakes/cuda/libraries/faults.h"

namespace hone::fakes {

// A kernel of a module that was loaded.
struct FakeFunction {
  std::string name;
  cuda::EmulatedModule* module = nullptr;  // null: a reference kernel of the runner, in PTX
  int max_dynamic_bytes = 48 << 10;
  cuda::Context context = nullptr;  // that the kernel belongs to
};

struct FakeModule {
  std::unique_ptr<cuda::EmulatedModule> emulated;  // null: the reference kernels
  std::map<std::string, std::unique_ptr<FakeFunction>> functions;
};

// A launch with its own copy of the parameters, of which each has up to 8 bytes.
class FakeLaunch {
 public:
  FakeLaunch(const FakeFunction& function, const cuda::LaunchOptions& options, void** parameters);

  const FakeFunction& function() const { return *function_; }
  const cuda::LaunchOptions& options() const { return options_; }
  // A pointer to each parameter, as for cuLaunchKernel.
  std::vector<void*> Parameters();

 private:
  const FakeFunction* function_;
  cuda::LaunchOptions options_;
  std::vector<uint64_t> values_;
};

// The state that all devices and contexts of the driver share. Threads take turns.
class FakeDriver {
 public:
  static FakeDriver& Get();

  const Faults faults;

  // The error of a kernel that failed; 0 if none did. Every later call returns it.
  cuda::Result sticky() const { return sticky_; }

  int Attribute(int attribute) const;
  cuda::Result Load(const void* image, FakeModule** module) const;
  cuda::Result Find(FakeModule& module, const char* name, FakeFunction** function) const;
  cuda::Result Allocate(size_t bytes, cuda::DevicePointer* pointer);
  cuda::Result Free(cuda::DevicePointer pointer);
  // Whether the bytes are within one allocation.
  bool Holds(cuda::DevicePointer pointer, size_t bytes) const;
  // Runs a kernel to its end. sticky() then has its fault, as on a device that runs asynchronously.
  cuda::Result Launch(FakeLaunch& launch);

 private:
  mutable std::recursive_mutex turn_;
  std::atomic<cuda::Result> sticky_ = 0;
  size_t used_bytes_ = 0;
  std::map<cuda::DevicePointer, size_t> allocations_;
};

}  // namespace hone::fakes

#endif  // HONE_TESTS_FAKES_CUDA_LIBRARIES_FAKE_DEVICE_H_
