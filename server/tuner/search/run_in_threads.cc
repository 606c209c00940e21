#include "server/tuner/search/run_in_threads.h"

#include <exception>
#include <thread>
#include <vector>

namespace hone::search {
void RunInThreads(size_t count, absl::FunctionRef<void(size_t)> work) {
  std::vector<std::exception_ptr> thrown(count);
  const auto run = [&](size_t thread) {
    try {
      work(thread);
    } catch (...) {
      thrown[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;  // joined even if starting a thread fails
    for (size_t thread = 1; thread < count; ++thread)
      others.emplace_back([&run, thread] { run(thread); });
    if (count > 0) run(0);
  }
  for (const std::exception_ptr& exception : thrown) {
    if (exception != nullptr) std::rethrow_exception(exception);
  }
}

}  // namespace hone::search
