// setjmp of a fortified C library refuses to jump between stacks.
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 0

#include "tests/fakes/cuda/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

namespace hone::cuda {

Fiber::Fiber(std::function<void()> run) : run_(std::move(run)) {
  stack_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack_ == MAP_FAILED) std::abort();
}

Fiber::~Fiber() { munmap(stack_, kStackBytes); }

// makecontext passes ints.
void Fiber::Start(unsigned high, unsigned low) {
  auto* const fiber = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  for (;;) {
    fiber->run_();
    fiber->Pause();
  }
}

// swapcontext saves the signal mask, which costs system calls. So it only begins a fiber.
void Fiber::Resume() {
  if (_setjmp(caller_) != 0) return;
  if (started_) _longjmp(fiber_, 1);
  started_ = true;
  ucontext_t context, unused;
  getcontext(&context);
  context.uc_stack.ss_sp = stack_;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::Start), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  swapcontext(&unused, &context);
}

void Fiber::Pause() {
  if (_setjmp(fiber_) == 0) _longjmp(caller_, 1);
}

}  // namespace hone::cuda
