#include "client/cli/interrupt.h"

#include <signal.h>

#include <atomic>

namespace hone::cli {
namespace {

std::atomic<int> interrupts{0};
std::atomic<int> last_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void Count(int signal_number) {
  last_signal = signal_number;
  if (interrupts.fetch_add(1) + 1 >= 2) signal(signal_number, SIG_DFL);
}

void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptCounter::InterruptCounter() {
  interrupts = 0;
  Handle(Count);
}

InterruptCounter::~InterruptCounter() { Handle(SIG_DFL); }

int InterruptCounter::count() const { return interrupts; }

void EndByCountedSignal() {
  if (last_signal == 0) return;
  signal(last_signal, SIG_DFL);
  raise(last_signal);
}

}  // namespace hone::cli
