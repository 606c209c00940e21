#ifndef HONE_TESTS_FAKES_CUDA_FIBER_H_
#define HONE_TESTS_FAKES_CUDA_FIBER_H_

#include <setjmp.h>

#include <cstddef>
#include <functional>

namespace hone::cuda {

// A coroutine: a function with its own stack. Its owner resumes it, and it can pause itself. All
// fibers run on one system thread.
class Fiber {
 public:
  explicit Fiber(std::function<void()> run);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the function to its next Pause() or its end. After the end, it starts from the beginning.
  void Resume();
  // Called by the function.
  void Pause();

 private:
  static constexpr size_t kStackBytes = 256 << 10;

  static void Start(unsigned high, unsigned low);

  std::function<void()> run_;
  void* stack_ = nullptr;
  bool started_ = false;
  jmp_buf fiber_, caller_;
};

}  // namespace hone::cuda

#endif  // HONE_TESTS_FAKES_CUDA_FIBER_H_
