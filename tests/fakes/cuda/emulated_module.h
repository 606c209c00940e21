#ifndef HONE_TESTS_FAKES_CUDA_EMULATED_MODULE_H_
#define HONE_TESTS_FAKES_CUDA_EMULATED_MODULE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/fakes/cuda/emulated_block.h"

namespace hone::cuda {

// Compiles printed CUDA kernels for this CPU with the system's compiler, c++, and returns a shared
// object. The text itself is compiled, behind the prelude in emulation.h. InvalidArgument: the
// compiler refuses it; the message is the compiler's. Internal: there is no compiler, or files
// cannot be written. REQUIRES: the current folder is the root of the source tree.
absl::StatusOr<std::string> BuildEmulatedModule(absl::string_view text);

// The same for several texts at once, which is faster. The kernels of text i are called "i:name".
absl::StatusOr<std::string> BuildEmulatedModules(absl::Span<const std::string> texts);

// A loaded shared object that BuildEmulatedModule made. Not thread-safe.
class EmulatedModule {
 public:
  // Copies the bytes. InvalidArgument: they are no such shared object.
  static absl::StatusOr<std::unique_ptr<EmulatedModule>> Load(absl::string_view shared_object);
  ~EmulatedModule();
  EmulatedModule(const EmulatedModule&) = delete;
  EmulatedModule& operator=(const EmulatedModule&) = delete;

  // The number of parameters of a kernel; NotFound: no such kernel.
  absl::StatusOr<int> Parameters(absl::string_view kernel) const;

  // Runs all blocks of a launch. `parameters`: a pointer to each parameter, as for cuLaunchKernel.
  // NotFound: no such kernel. Errors of EmulatedLaunch::Run: mistakes of the kernel.
  absl::Status Launch(absl::string_view kernel, const LaunchOptions& options, void** parameters);

 private:
  EmulatedModule() = default;

  // The file of the shared object, which stays open while it is loaded: the loader takes a file of
  // the same name for the same one.
  int file_ = -1;
  void* handle_ = nullptr;
  HoneEmulationHost** host_ = nullptr;
  std::map<std::string, const HoneEmulatedKernel*, std::less<>> kernels_;
};

}  // namespace hone::cuda

#endif  // HONE_TESTS_FAKES_CUDA_EMULATED_MODULE_H_
