#ifndef HONE_SERVER_STORE_BEST_CHECK_H_
#define HONE_SERVER_STORE_BEST_CHECK_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/store.h"

// Which records may be published as best. Used by every database.
namespace hone::store {

// Checks that a record can be published. `has_text` and `has_artifact` look up digests in the
// store. FailedPrecondition: see Store::PublishBest.
absl::Status CheckPublishable(
    const record::Record& record,
    const std::function<absl::StatusOr<bool>(const std::string&)>& has_text,
    const std::function<absl::StatusOr<bool>(const std::string&)>& has_artifact);

absl::Status NoBestError(const BestQuery& query);

// InvalidArgument: the record is of another task.
absl::Status CheckTask(const record::Record& record, const TaskKey& task);
// NotFound: the task's best is not pinned.
absl::Status NoPinError(const TaskKey& task);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_BEST_CHECK_H_
