#ifndef HONE_CLIENT_CLI_DATASET_FOREIGN_LOG_H_
#define HONE_CLIENT_CLI_DATASET_FOREIGN_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/record/record.h"
#include "nlohmann/json.hpp"

// Logs of other tuning systems: text files with a JSON value per line.
namespace hone::cli {

// Longer lines of such logs are skipped. Their usual length is some kilobytes.
inline constexpr size_t kMostForeignLineBytes = size_t{4} << 20;

// A measurement of such a log.
struct ForeignRecord {
  std::string target;    // as the log writes it
  std::string workload;  // in Hone's language; "" if the operator is unknown
  std::string key;       // how the log names the workload
  nlohmann::json steps;  // the schedule
  std::string trace;     // the same schedule as a trace file; "" if it was not replayed
  std::string reason;    // why it was not replayed, in a few words that many records share
  record::Outcome outcome = record::Outcome::kOk;
  double latency_ns = 0;  // the mean of the repeats; 0 unless ok
  int64_t created_unix_ms = 0;
};

struct ForeignFormat {
  const char* name;
  bool has_workload_file;  // database_workload.json, beside the log
  // Whether a line is a record of this format, perhaps a malformed one.
  bool (*recognizes)(const nlohmann::json& line);
  // `workloads`: the names in the file of workloads, to which records refer by index; empty if
  // there is none. InvalidArgument: a part is missing, unknown or of another type; the message says
  // which.
  absl::StatusOr<ForeignRecord> (*parse)(const nlohmann::json& line,
                                         absl::Span<const std::string> workloads);
};

// The space of a record that is not replayed: "foreign FORMAT: REASON" and the steps.
std::string ForeignSpace(absl::string_view format, const ForeignRecord& record);
// The reason of such a space; nullopt for any other space.
std::optional<std::string> ReasonOfForeignSpace(absl::string_view space);
inline constexpr absl::string_view kUnknownWorkload = "unknown workload";

// How many records of a format were replayed, and why the others were not.
struct ReplayCount {
  int64_t replayed = 0;
  std::map<std::string, int64_t> not_replayed;  // by reason

  void Add(bool is_replayed, const std::string& reason);
  // "replayed 12 of 53 records (not replayed: 30 unknown workload, 11 step RF)".
  std::string ToText() const;
};

// A format is a file and an entry of this list.
absl::Span<const ForeignFormat> ForeignFormats();
extern const ForeignFormat kAnsorFormat, kAutoTvmFormat, kMetaScheduleFormat;

// Parses a line. Python writes Infinity and NaN, which JSON does not have; they become null.
// InvalidArgument: it is no JSON, or nested too deeply.
absl::StatusOr<nlohmann::json> ParseForeignLine(absl::string_view line);

// Sets the outcome and the latency from the costs in seconds and the error number of Ansor and
// AutoTVM. A cost that is not a number, infinite, not positive, or the mark of a failure (1e9 or
// more) is kInvalid if no error number says more. InvalidArgument: malformed, or an unknown number.
absl::Status SetCost(const nlohmann::json& costs, const nlohmann::json& error_number,
                     ForeignRecord& record);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_FOREIGN_LOG_H_
