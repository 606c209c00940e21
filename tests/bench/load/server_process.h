#ifndef HONE_TESTS_BENCH_LOAD_SERVER_PROCESS_H_
#define HONE_TESTS_BENCH_LOAD_SERVER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/load/scrape.h"
#include "tests/integration/process.h"

namespace hone::load {

// A separate hone-server on local TCP ports, with metrics. Killed in the destructor.
class ServerProcess {
 public:
  // DeadlineExceeded: it is not ready within a minute; the message has its output.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const std::string& store);

  const std::string& address() const { return address_; }
  pid_t pid() const { return process_.pid(); }
  absl::StatusOr<Scrape> Metrics() const { return Scrape::Of(metrics_port_); }
  std::string Log() const { return process_.Errors(); }
  // Stops it gracefully and returns its exit code.
  int Stop();

 private:
  ServerProcess(const std::string& store, const std::string& ready_file);

  integration::Process process_;
  std::string address_;
  int metrics_port_ = 0;
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SERVER_PROCESS_H_
