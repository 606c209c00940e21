#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "server/store/exchange/exchange.h"

namespace hone::store {
namespace {

constexpr int kRecordsAtOnce = 1000;
constexpr int kBestsAtOnce = 50;  // few, because their artifacts are large

// Adds the texts of records to a batch. A record whose texts are missing is not copied.
class Texts {
 public:
  explicit Texts(Store& from) : from_(from) {}
  // Adds the text to the batch unless an earlier batch contained it.
  absl::StatusOr<bool> Add(const std::string& digest, ImportBatch& batch) {
    if (sent_.contains(digest)) return true;
    absl::StatusOr<std::string> text = from_.GetText(digest);
    if (absl::IsNotFound(text.status())) return false;
    HONE_RETURN_IF_ERROR(text.status());
    batch.texts.emplace(digest, *std::move(text));
    sent_.insert(digest);
    return true;
  }

 private:
  Store& from_;
  absl::flat_hash_set<std::string> sent_;
};

absl::Status Send(Store& into, ImportBatch batch, ImportReport& sum) {
  absl::Notification done;
  absl::StatusOr<ImportReport> report;
  into.Import(std::move(batch), [&](absl::StatusOr<ImportReport> result) {
    report = std::move(result);
    done.Notify();
  });
  done.WaitForNotification();
  HONE_RETURN_IF_ERROR(report.status());
  sum.added += report->added;
  sum.known += report->known;
  sum.bests += report->bests;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportReport> MergeStores(Store& into, Store& from) {
  HONE_ASSIGN_OR_RETURN(const std::string origin, from.Identity());
  ImportReport sum;
  Texts texts(from);
  for (const bool bests : {false, true}) {
    RecordQuery query{.best_only = bests, .page_size = bests ? kBestsAtOnce : kRecordsAtOnce};
    while (true) {
      HONE_ASSIGN_OR_RETURN(std::vector<record::Record> page, from.Query(query));
      if (page.empty()) break;
      ImportBatch batch{.origin = origin};
      for (record::Record& record : page) {
        query.after_id = record.id;
        HONE_ASSIGN_OR_RETURN(const bool workload, texts.Add(record.workload_digest, batch));
        HONE_ASSIGN_OR_RETURN(const bool space, texts.Add(record.candidate.space_digest, batch));
        if (!workload || !space) continue;
        if (bests) {
          const std::string& artifact = record.result.artifact_digest;
          HONE_ASSIGN_OR_RETURN(batch.artifacts[artifact], from.GetArtifact(artifact));
          batch.bests.push_back(batch.records.size());
        }
        batch.where.push_back(absl::StrCat("record ", record.id, " of the other store"));
        batch.records.push_back(std::move(record));
      }
      ImportReport before = sum;
      HONE_RETURN_IF_ERROR(Send(into, std::move(batch), sum));
      if (bests) sum.known = before.known;  // these records were already counted
      if (static_cast<int>(page.size()) < query.page_size) break;
    }
  }
  return sum;
}

}  // namespace hone::store
