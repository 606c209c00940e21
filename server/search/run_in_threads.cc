#include "server/search/run_in_threads.h"

#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace hone::search {
namespace {

// Joins its threads also where starting another one fails.
class JoinedThreads {
 public:
  explicit JoinedThreads(size_t most) { threads_.reserve(most); }
  ~JoinedThreads() {
    for (std::thread& thread : threads_) thread.join();
  }
  template <typename Function>
  void Start(Function function) {
    threads_.emplace_back(std::move(function));
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

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
    JoinedThreads others(count);
    for (size_t thread = 1; thread < count; ++thread) others.Start([&run, thread] { run(thread); });
    if (count > 0) run(0);
  }
  for (const std::exception_ptr& exception : thrown) {
    if (exception != nullptr) std::rethrow_exception(exception);
  }
}

}  // namespace hone::search
