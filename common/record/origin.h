#ifndef HONE_COMMON_RECORD_ORIGIN_H_
#define HONE_COMMON_RECORD_ORIGIN_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/record/record.h"

// Facts that the texts of a record hold: the server or the worker writes them, and the client reads
// them.
namespace hone::record {

// The name in this store of a job of another one, from which its measurements were imported.
inline std::string ImportedJobId(absl::string_view store, absl::string_view job) {
  return absl::StrCat(store, "/", job);
}
inline bool IsImported(absl::string_view job_id) { return absl::StrContains(job_id, '/'); }

// The reason of the quarantine of a record that a user has forgotten. `by`: "" if it is unknown.
inline std::string ForgottenReason(absl::string_view by, absl::string_view when) {
  return absl::StrCat("forgotten ", by.empty() ? "" : absl::StrCat("by ", by, " "), "on ", when);
}
inline bool IsForgotten(const Record& record) {
  return record.quarantined && absl::StartsWith(record.quarantine_reason, "forgotten ");
}

// The end of the detail of a candidate that is so slow that only a part of it was run.
inline constexpr char kOutputNotChecked[] = "the output was not checked";
inline bool OutputWasChecked(const MeasureResult& result) {
  return !absl::StrContains(result.detail, kOutputNotChecked);
}

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_ORIGIN_H_
