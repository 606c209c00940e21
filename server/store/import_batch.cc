#include "server/store/import_batch.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/record_columns.h"

namespace hone::store {

std::string ImportedJob(absl::string_view job, absl::string_view origin, absl::string_view here) {
  if (job.empty() || origin == here || absl::StrContains(job, '/')) return std::string(job);
  return absl::StrCat(origin, "/", job);
}

absl::Status AtRecord(const ImportBatch& batch, size_t index, const absl::Status& status) {
  const std::string where =
      index < batch.where.size() ? batch.where[index] : absl::StrCat("record ", index + 1);
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

absl::Status CheckBatch(const ImportBatch& batch,
                        const std::function<absl::StatusOr<bool>(const std::string&)>& has_text) {
  absl::flat_hash_map<std::string, bool> known;
  for (size_t i = 0; i < batch.records.size(); ++i) {
    const record::Record& record = batch.records[i];
    if (const absl::Status status = CheckRecord(record); !status.ok()) {
      return AtRecord(batch, i, status);
    }
    for (const std::string* const digest :
         {&record.workload_digest, &record.candidate.space_digest}) {
      if (batch.texts.contains(*digest)) continue;
      auto found = known.find(*digest);
      if (found == known.end()) {
        HONE_ASSIGN_OR_RETURN(const bool has, has_text(*digest));
        found = known.emplace(*digest, has).first;
      }
      if (found->second) continue;
      return AtRecord(batch, i,
                      absl::InvalidArgumentError(absl::StrCat(
                          "its text ", *digest, " is neither in the import nor in the store")));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::store
