#include "common/target/openmp_runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

namespace hone::target {
namespace {

// The functions that GCC's compiled code calls; LLVM's runtime has them, too.
struct OpenMp {
  void (*parallel)(void (*task)(void*), void* data, unsigned threads, unsigned flags);
  int (*thread_num)();
  int (*num_threads)();
  int (*max_threads)();
};

const OpenMp* Library() {
  static const OpenMp* const library = [] {
    static OpenMp functions;
    void* const handle = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NODELETE);
    if (handle == nullptr) return static_cast<OpenMp*>(nullptr);
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    const bool complete = find("GOMP_parallel", functions.parallel) &&
                          find("omp_get_thread_num", functions.thread_num) &&
                          find("omp_get_num_threads", functions.num_threads) &&
                          find("omp_get_max_threads", functions.max_threads);
    return complete ? &functions : nullptr;
  }();
  return library;
}

struct Loop {
  int64_t extent;
  int64_t chunk;
  void (*body)(void* context, int64_t begin, int64_t end, int64_t thread);
  void* context;
  // Alone in its cache line, because every thread changes it.
  alignas(64) std::atomic<int64_t> next{0};
};

// Runs on every thread.
void Run(void* data) {
  Loop& loop = *static_cast<Loop*>(data);
  const int64_t thread = Library()->thread_num();
  if (loop.chunk == 0) {
    const int64_t threads = Library()->num_threads();
    loop.body(loop.context, thread * loop.extent / threads, (thread + 1) * loop.extent / threads,
              thread);
    return;
  }
  for (;;) {
    const int64_t begin = loop.next.fetch_add(loop.chunk, std::memory_order_relaxed);
    if (begin >= loop.extent) return;
    loop.body(loop.context, begin, std::min(begin + loop.chunk, loop.extent), thread);
  }
}

void ParallelFor(const HoneRuntime*, int64_t extent, int64_t chunk, int32_t threads,
                 void (*body)(void* context, int64_t begin, int64_t end, int64_t thread),
                 void* context) {
  Loop loop{extent, chunk, body, context};
  Library()->parallel(Run, &loop, static_cast<unsigned>(threads), 0);
}

}  // namespace

bool LoadOpenMp() { return Library() != nullptr; }

int32_t OpenMpThreads() { return Library()->max_threads(); }

HoneRuntime OpenMpRuntime(int32_t threads) { return {ParallelFor, std::max(threads, 1)}; }

}  // namespace hone::target
