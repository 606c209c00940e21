#include "client/cli/signals.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iterator>

namespace hone::cli {
namespace {

std::atomic<bool> must_print_json{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");

// The following functions run in signal handlers, so they only call what such handlers may call.

void EndBy(int signal_number) {
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void PrintAndEnd(int signal_number) {
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

}  // namespace

void HandleSignals(bool json) {
  Handle(SIGPIPE, OnBrokenPipe);
  must_print_json = json;
  if (!json) return;
  for (const int fatal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGBUS, SIGFPE, SIGILL,
                          SIGSEGV, SIGXCPU, SIGSYS}) {
    struct sigaction now = {};
    sigaction(fatal, nullptr, &now);
    // Ignored signals stay ignored, such as SIGHUP under nohup.
    if (now.sa_handler == SIG_DFL) Handle(fatal, PrintAndEnd);
  }
}

void SetJsonIsPrinted() { must_print_json = false; }

}  // namespace hone::cli
