#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_CHECK_REPORT_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_CHECK_REPORT_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/cli/network/network_timing.h"
#include "client/cli/output/json_output.h"

// What hone check says about a comparison: for people, for scripts, and as files for CI.
namespace hone::cli {

// The time of a network beside its baseline.
struct Comparison {
  NetworkTiming timing;
  NetworkSpeed baseline;
  double max_regression = 0;  // as a fraction of the baseline's latency
  std::string disturbance;    // how other work disturbed the measurement; "" if it did not

  double Regression() const;  // as a fraction of the baseline's latency
  bool Passes() const { return Regression() <= max_regression; }
};

// `path`: of the baselines.
Json ToJson(const Comparison& comparison, const std::string& path);
// Prints the comparison and the steps that changed most.
void Print(const Comparison& comparison);

// A check for CI.
struct CheckReport {
  std::string name;                      // as on the command line
  std::optional<Comparison> comparison;  // nullopt: an error prevented it
  absl::Status result;
};

// A JUnit file with one test case. It is a failure if the network is too slow, skipped if other
// work disturbed a measurement that seems too slow, and an error if nothing was compared.
std::string CheckJunit(const CheckReport& report);
// A section of Markdown, as GitHub shows it, for a comment on a pull request.
std::string CheckMarkdown(const CheckReport& report);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_CHECK_REPORT_H_
