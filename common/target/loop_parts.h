#ifndef HONE_COMMON_TARGET_LOOP_PARTS_H_
#define HONE_COMMON_TARGET_LOOP_PARTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/target/hone_runtime.h"

namespace hone::target {

// The threads of another runtime for one run of a kernel. Parallel loops run in parts of some
// milliseconds, and a function is called between these, so that a kernel that computes for minutes
// can give way to other processes. A loop that another one starts is a part of that. For one
// thread, which runs a kernel.
class LoopParts {
 public:
  // `between` is called on the thread of the kernel. If it fails, all further parts are left out,
  // and what the kernel has written is worthless. Must outlive this object, like `threads`.
  LoopParts(const HoneRuntime& threads, absl::FunctionRef<absl::Status()> between);

  LoopParts(const LoopParts&) = delete;
  LoopParts& operator=(const LoopParts&) = delete;

  // For the kernel; valid as long as this object. With a thread more if there is only one, because
  // kernels run loops for one thread without the runtime.
  const HoneRuntime& runtime() const { return handle_.runtime; }
  // The error of `between`.
  const absl::Status& status() const { return status_; }

 private:
  using Body = void (*)(void* context, int64_t begin, int64_t end, int64_t thread);
  struct Handle {
    HoneRuntime runtime;  // the first member, so that its address is that of the handle
    LoopParts* parts;
  };

  void Run(int64_t extent, int64_t chunk, int32_t threads, Body body, void* context);

  const HoneRuntime& threads_;
  const absl::FunctionRef<absl::Status()> between_;
  Handle handle_;
  bool in_loop_ = false;  // written only while no loop runs
  absl::Status status_;
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_LOOP_PARTS_H_
