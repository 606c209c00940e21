#ifndef HONE_SERVER_STORE_IMPORT_BATCH_H_
#define HONE_SERVER_STORE_IMPORT_BATCH_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

// What an import checks and changes, the same in every database.
namespace hone::store {

// The name that a job of the store `origin` has in the store `here`.
std::string ImportedJob(absl::string_view job, absl::string_view origin, absl::string_view here);

// The status with the place of the batch's record in front.
absl::Status AtRecord(const ImportBatch& batch, size_t index, const absl::Status& status);

// Whether every record of the batch is well formed and has its texts, of which `has_text` knows
// those that are in the store. InvalidArgument: says which has not.
absl::Status CheckBatch(const ImportBatch& batch,
                        const std::function<absl::StatusOr<bool>(const std::string&)>& has_text);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_IMPORT_BATCH_H_
