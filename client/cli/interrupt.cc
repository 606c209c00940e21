#include "client/cli/interrupt.h"

#include <signal.h>

#include <atomic>

namespace hone::cli {
namespace {

std::atomic<int> interrupts{0};
std::atomic<int> last_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

// The actions while no instance exists.
struct sigaction int_action = {};
struct sigaction term_action = {};

void Count(int signal_number) {
  last_signal = signal_number;
  if (interrupts.fetch_add(1) + 1 < 2) return;
  sigaction(signal_number, signal_number == SIGINT ? &int_action : &term_action, nullptr);
}

}  // namespace

InterruptCounter::InterruptCounter() {
  interrupts = 0;
  struct sigaction action = {};
  action.sa_handler = Count;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &int_action);
  sigaction(SIGTERM, &action, &term_action);
}

InterruptCounter::~InterruptCounter() {
  sigaction(SIGINT, &int_action, nullptr);
  sigaction(SIGTERM, &term_action, nullptr);
}

int InterruptCounter::count() const { return interrupts; }

void EndByCountedSigterm() {
  if (last_signal != SIGTERM) return;
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
}

}  // namespace hone::cli
