#include "common/target/loop_parts.h"

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hone::target {
namespace {

// Parts that take less are enlarged, and parts that take more are made smaller.
constexpr absl::Duration kShortestPart = absl::Milliseconds(5);
constexpr absl::Duration kLongestPart = absl::Milliseconds(20);

}  // namespace

LoopParts::LoopParts(const HoneRuntime& threads, absl::FunctionRef<absl::Status()> between)
    : threads_(threads),
      between_(between),
      handle_{.runtime = {.parallel_for =
                              [](const HoneRuntime* runtime, int64_t extent, int64_t chunk,
                                 int32_t used, Body body, void* context) {
                                reinterpret_cast<const Handle*>(runtime)->parts->Run(
                                    extent, chunk, used, body, context);
                              },
                          .threads = std::max<int32_t>(2, threads.threads)},
              .parts = this} {}

void LoopParts::Run(int64_t extent, int64_t chunk, int32_t threads, Body body, void* context) {
  threads = std::min(threads, threads_.threads);
  if (in_loop_) {
    threads_.parallel_for(&threads_, extent, chunk, threads, body, context);
    return;
  }
  struct Part {
    Body body;
    void* context;
    int64_t begin;
  };
  int64_t size = threads;
  for (int64_t begin = 0; begin < extent && status_.ok();) {
    Part part = {body, context, begin};
    const int64_t count = std::min(size, extent - begin);
    const absl::Time start = SteadyNow();
    in_loop_ = true;
    threads_.parallel_for(
        &threads_, count, chunk, threads,
        [](void* argument, int64_t first, int64_t end, int64_t thread) {
          const Part& own = *static_cast<const Part*>(argument);
          own.body(own.context, own.begin + first, own.begin + end, thread);
        },
        &part);
    in_loop_ = false;
    const absl::Duration taken = SteadyNow() - start;
    begin += count;
    if (taken < kShortestPart) size = std::min(2 * size, extent);
    if (taken > kLongestPart) size = std::max<int64_t>(threads, size / 2);
    status_ = between_();
  }
}

}  // namespace hone::target
