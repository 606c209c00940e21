#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_REPORT_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/network/network_timing.h"
#include "client/connection/api.h"

namespace hone::cli {

// A task of a network in a report.
struct ReportedTask {
  std::string name;   // the name of its workload
  std::string types;  // "f32[1, 64, 56, 56], f32[64, 64, 1, 1] -> f32[1, 64, 56, 56]"
  int64_t weight = 0;
  double latency_ns = 0;    // per step; 0: unknown
  bool confirmed = true;    // the latency; others are marked with ~
  double gflops = 0;        // 0: unknown
  double limit_gflops = 0;  // the roofline limit; 0: unknown
  std::string bound;        // what sets the limit (BoundOf); "": unknown
  // Of the job that tuned the network.
  int64_t trials = 0;
  double default_latency_ns = 0;  // 0: unknown
  std::string error;
  std::string algorithm;  // of AlgorithmOf
};

// What is known of a tuned network.
struct NetworkReport {
  std::string network;  // path
  std::string target;
  int64_t created_unix_ms = 0;
  std::vector<ReportedTask> tasks;
  std::optional<NetworkTiming> measured;  // end to end
  std::string disturbance;                // how other work disturbed `measured`; "": it did not
  double algorithm_error = 0;             // of ErrorOfAlgorithms; 0: unknown, or no error
  // Of the job that tuned the network; nullopt if the report is of the store alone.
  std::optional<v1::Job> job;
};

// `bests`: one for each task. `job`: one that tuned the network, or null.
NetworkReport MakeReport(const NetworkArgument& network, const std::string& target,
                         const std::vector<std::optional<v1::Best>>& bests, const v1::Job* job);

// The same for a job of a server, without the model. `bests`: one for each task of the job. A task
// without a best has the latency that the search found. Errors as for ir::ParseWorkload.
absl::StatusOr<NetworkReport> MakeReport(const v1::Job& job,
                                         const std::vector<std::optional<v1::Best>>& bests);

// Returns a self-contained HTML page: a table of the tasks, their shares of the latency, and the
// estimated latency over the time of the job.
std::string ReportHtml(const NetworkReport& report);

// InvalidArgument: the folder of the path does not exist. A long command checks this first.
absl::Status CheckReportPath(const std::string& path, absl::string_view option = "--report");
// Writes the page. Errors as for WriteFileAtomically, with kExitFailed.
absl::Status WriteReport(const NetworkReport& report, const std::string& path);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_REPORT_H_
