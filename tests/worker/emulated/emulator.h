#ifndef HONE_TESTS_WORKER_EMULATED_EMULATOR_H_
#define HONE_TESTS_WORKER_EMULATED_EMULATOR_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/target.h"

namespace hone::codegen {

// A buffer of a kernel that runs under emulation. It begins `offset` bytes after an aligned
// address.
struct EmulatedBuffer {
  int64_t offset = 0;
  std::string bytes;
};

// A process under user-mode emulation that loads and runs kernels of another architecture, one
// after the other. It checks guard bytes around all memory of a kernel. One thread does the work of
// all. If it ends with a kernel, the next call starts another one.
class Emulator {
 public:
  // Returns the emulator of a CPU that has the target's features and no newer ones, if there is
  // such a choice. It lives as long as this process. Unimplemented: the architecture has none.
  // NotFound: the emulator or the program for it was not there when the tests were built.
  static absl::StatusOr<Emulator*> For(const target::Target& target);

  // Runs a kernel; the contents of the buffers are then those after the run. Internal: it cannot be
  // loaded, returned an error code, wrote outside of its memory, or ended the process.
  absl::Status Run(absl::string_view shared_object, int32_t threads,
                   absl::Span<EmulatedBuffer> buffers);

 private:
  explicit Emulator(std::vector<std::string> command) : command_(std::move(command)) {}
  absl::Status Start();
  // Describes how the process ended, and forgets it.
  absl::Status Ended();
  bool Send(absl::string_view bytes);
  bool Receive(void* memory, int64_t bytes);

  std::vector<std::string> command_;
  int socket_ = -1;
  pid_t process_ = -1;
};

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_EMULATED_EMULATOR_H_
