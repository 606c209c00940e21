#ifndef HONE_CLIENT_CLI_JSON_OUTPUT_H_
#define HONE_CLIENT_CLI_JSON_OUTPUT_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/lib/api.h"
#include "nlohmann/json.hpp"

// The shapes of what --json prints. Keys are part of the interface: they are added, never renamed.
namespace hone::cli {

using Json = nlohmann::ordered_json;

Json ToJson(const record::Record& record);
Json ToJson(const client::Worker& worker);
// A line of `hone jobs list`.
Json ToJson(const client::Job& job);
Json ToJson(const client::StoredModel& model);
// latency_ns and gflops; null where there is none.
Json LatencyJson(const std::optional<client::Best>& best);

// What `hone tune --json` ends with: workload, target, trials, outcomes, wall_s, trials_per_min,
// best, default, peak_gflops, job.
Json TuneJson(const client::Job& job, double peak_gflops);
// What `hone best --json` prints; of an adapted schedule "best" is null, and "adapted" and
// "nearest" tell of it.
Json BestJson(const client::Best& best);

template <typename T>
Json ListJson(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(ToJson(item));
  return list;
}

// One object on one line on standard output. Text that is not UTF-8 is replaced. Returns ok, with
// which a command ends; main finds out whether the output could be written.
absl::Status PrintJson(const Json& json);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_JSON_OUTPUT_H_
