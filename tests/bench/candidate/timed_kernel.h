#ifndef HONE_TESTS_BENCH_CANDIDATE_TIMED_KERNEL_H_
#define HONE_TESTS_BENCH_CANDIDATE_TIMED_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/workload.h"
#include "common/target/kernel_abi.h"
#include "common/target/loaded_kernel.h"
#include "common/target/target.h"

namespace hone::bench {

double ProcessorSeconds(clockid_t clock);

// A kernel for one thread of this machine, and the buffers that it runs on.
class TimedKernel {
 public:
  // Builds the kernel of a schedule in `folder`. InvalidArgument: it cannot be built.
  static absl::StatusOr<std::unique_ptr<TimedKernel>> Build(const ir::Workload& workload,
                                                            const std::string& trace_file,
                                                            const std::vector<int64_t>& decisions,
                                                            const target::Target& target,
                                                            const std::string& folder);
  // Allocates the buffers, fills the inputs, and runs the kernel once.
  absl::Status Load();
  absl::Status Run();
  // Returns the processor time of a call, in nanoseconds, over some calls. REQUIRES: Load().
  double Nanoseconds(double at_least_seconds);

  double build_milliseconds() const { return build_milliseconds_; }
  int64_t object_bytes() const { return object_bytes_; }
  // The inputs come first.
  void* buffer(size_t position) { return buffers_[position]; }

 private:
  TimedKernel() = default;

  std::vector<ir::Tensor> tensors_;
  int inputs_ = 0;
  double build_milliseconds_ = 0;
  int64_t object_bytes_ = 0;
  std::string shared_object_;
  std::unique_ptr<target::LoadedKernel> loaded_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<void*> buffers_;
  HoneRuntime runtime_{};
  std::shared_ptr<std::byte> workspace_, packed_;
};

}  // namespace hone::bench

#endif  // HONE_TESTS_BENCH_CANDIDATE_TIMED_KERNEL_H_
