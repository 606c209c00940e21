#ifndef HONE_CLIENT_CLI_OUTPUT_JSON_OUTPUT_H_
#define HONE_CLIENT_CLI_OUTPUT_JSON_OUTPUT_H_

#include <initializer_list>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/connection/api.h"
#include "nlohmann/json.hpp"

namespace google::protobuf {
class Message;
}

// The JSON that --json prints. Its keys are part of the interface: they may be added, but are never
// renamed.
namespace hone::cli {

// A field of a message, and its key in JSON, which is usually the name of the field.
struct JsonField {
  JsonField(const char* name, const char* key) : name(name), key(key) {}
  JsonField(const char* name) : JsonField(name, name) {}

  const char* name;
  const char* key;
};

// Returns these fields of a message as a JSON object, in this order and also if they have their
// default values; without a list, all fields. A name may be a path, such as "request.priority". A
// number that is not finite is null. A value of an enum is the rest of its name in lower case, such
// as "running", or "" if it is unspecified. REQUIRES: the message has the fields; they are numbers,
// texts, flags, enums, or lists of real numbers.
nlohmann::ordered_json FieldsJson(const google::protobuf::Message& message,
                                  std::initializer_list<JsonField> fields = {});

// The keys are the same in all commands. job, record, worker and model are names or numbers as
// commands take them on the command line; the keys of lists are their plurals. Keys of counts end
// in _count (record_count), and those of times in _unix_ms (measured_unix_ms).
using Json = nlohmann::ordered_json;

// "latency_ns" is corrected for the speed of the machine, as everywhere (v1::Best.latency_ns).
// "raw_latency_ns" and "samples_ns" are as measured.
Json ToJson(const record::Record& record);
// The constants of a calibration (common/target/calibration.h) by name.
Json CalibrationJson(const std::string& text);
Json ToJson(const v1::WorkerInfo& worker);
// What `hone jobs show --json` prints, and an element of `hone jobs list --json`. "own_best" is the
// best of the job's own candidates; see TuneJson.
Json ToJson(const v1::Job& job);
Json ToJson(const v1::StoredModel& model);
// Who pinned a best, and when; null if it is not pinned.
Json PinnedJson(const v1::Best& best);
// latency_ns and gflops; null if there is no latency.
Json LatencyJson(const v1::Best& best);
// The best of a job, and whether it was confirmed, so that LookupBest can return it. It has the key
// quarantine_reason if it is known to be quarantined since.
Json JobBestJson(const v1::Job& job);
// The default schedule of a job, and whether it was measured in as many processes as the best.
Json DefaultJson(const v1::Job& job);

// The output of `hone tune --json`: workload, target, trials, outcomes, wall_s, trials_per_min,
// best, own_best, default, disturbed, peak_gflops, job, state. "best" has the job and the time of
// its measurement, because a best of an earlier job stays published unless this job's is faster;
// its "pinned" is null, or says who pinned it and when.
Json TuneJson(const v1::Job& job, double peak_gflops, double trials_per_second);
// The output of `hone best --json`. For an adapted schedule, "best" is null, and "adapted" and
// "nearest" describe it.
Json BestJson(const v1::Best& best);

// A pinned best: what `hone pin --json` prints, and an element of its list.
Json PinJson(const v1::Best& best);

template <typename List>
Json ListJson(const List& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(ToJson(item));
  return list;
}

// Prints one object of a stream on one line to standard output.
void PrintJsonLine(const Json& json);
// Prints one object on one line to standard output, and returns `result`, the status of the
// command. The message of an error is the value of "error". Invalid UTF-8 is replaced. main checks
// whether the output could be written.
absl::Status PrintJson(Json json, absl::Status result = absl::OkStatus());
// Whether PrintJson has printed this error, so that main need not print it as JSON again.
bool IsPrintedAsJson(const absl::Status& error);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_JSON_OUTPUT_H_
