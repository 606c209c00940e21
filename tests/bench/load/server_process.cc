#include "tests/bench/load/server_process.h"

#include <signal.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"

namespace hone::load {

ServerProcess::ServerProcess(const std::string& store, const std::string& ready_file)
    : process_({"hone-server", "--store", store, "--listen", "localhost:0", "--metrics-listen",
                "localhost:0", "--ready-file", ready_file}) {}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(const std::string& store) {
  const TemporaryFolder folder;
  const std::string ready_file = folder / "ready";
  auto server = std::unique_ptr<ServerProcess>(new ServerProcess(store, ready_file));
  const auto ready = [&] {
    return access(ready_file.c_str(), F_OK) == 0 || !server->process_.Running();
  };
  if (!integration::Eventually(ready, absl::Minutes(1)) || !server->process_.Running()) {
    return absl::DeadlineExceededError(absl::StrCat("hone-server does not serve: ", server->Log()));
  }
  for (absl::string_view line : absl::StrSplit(ReadFile(ready_file).value_or(""), '\n')) {
    if (absl::ConsumePrefix(&line, "listen ")) server->address_ = std::string(line);
  }
  const std::string log = server->Log();
  const std::string metrics = "metrics on port ";
  const size_t found = log.find(metrics);
  const bool named = found != std::string::npos &&
                     absl::SimpleAtoi(log.substr(found + metrics.size(),
                                                 log.find('\n', found) - found - metrics.size()),
                                      &server->metrics_port_);
  if (!named || server->address_.empty()) {
    return absl::InternalError(absl::StrCat("hone-server does not say where it serves: ", log));
  }
  return server;
}

int ServerProcess::Stop() {
  process_.Signal(SIGTERM);
  return process_.Wait();
}

}  // namespace hone::load
