#include "client/cli/output/signals.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iterator>
#include <utility>

#include "client/cli/exit_code.h"

namespace hone::cli {
namespace {

std::atomic<bool> must_print_json{false};
std::atomic<const char*> incomplete_file{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");
static_assert(std::atomic<const char*>::is_always_lock_free, "used in a signal handler");

// The following functions run in signal handlers, so they only call what such handlers may call.

void EndBy(int signal_number) {
  // Scripts in every language see the same exit code after Ctrl-C. If the signal itself ended the
  // program, only a shell would show it as 130.
  if (signal_number == SIGINT) _exit(kExitInterrupted);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void CleanUpAndEnd(int signal_number) {
  if (const char* const path = incomplete_file.exchange(nullptr); path != nullptr) unlink(path);
  if (must_print_json.exchange(false)) {
    char text[] = "{\"error\":\"hone was ended by signal 00\"}\n";
    char* const number = std::end(text) - sizeof("00\"}\n");
    number[0] = static_cast<char>('0' + signal_number / 10 % 10);
    number[1] = static_cast<char>('0' + signal_number % 10);
    if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0) errno = 0;
  }
  EndBy(signal_number);
}

void OnBrokenPipe(int signal_number) {
  const int error = errno;
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  const bool has_reader = poll(&output, 1, 0) >= 0 && (output.revents & POLLERR) == 0;
  if (!has_reader) EndBy(signal_number);
  errno = error;
}

void Handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

// Ignored signals stay ignored, such as SIGHUP under nohup.
void HandleUnlessIgnored(int signal_number) {
  struct sigaction now = {};
  sigaction(signal_number, nullptr, &now);
  if (now.sa_handler == SIG_DFL) Handle(signal_number, CleanUpAndEnd);
}

void HandleFatalSignals() {
  for (const int fatal :
       {SIGHUP, SIGQUIT, SIGTERM, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGXCPU, SIGSYS}) {
    HandleUnlessIgnored(fatal);
  }
}

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

void HandleSignals(bool json) {
  Handle(SIGPIPE, OnBrokenPipe);
  must_print_json = json;
  HandleUnlessIgnored(SIGINT);
  if (json) HandleFatalSignals();
}

void SetJsonIsPrinted() { must_print_json = false; }

IncompleteFile::IncompleteFile(std::string path) : path_(std::move(path)) {
  incomplete_file = path_.c_str();
  HandleFatalSignals();
}

IncompleteFile::~IncompleteFile() {
  incomplete_file = nullptr;
  unlink(path_.c_str());
}

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
