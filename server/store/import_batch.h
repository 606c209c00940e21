#ifndef HONE_SERVER_STORE_IMPORT_BATCH_H_
#define HONE_SERVER_STORE_IMPORT_BATCH_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

// The checks and changes of an import. Used by every database.
namespace hone::store {

// Returns the name that a job of the store `origin` gets in the store `here`.
std::string ImportedJob(absl::string_view job, absl::string_view origin, absl::string_view here);

// Adds the place of the record in the batch to the beginning of the message.
absl::Status AtRecord(const ImportBatch& batch, size_t index, const absl::Status& status);

// Checks that every record of the batch is well formed, and that its texts are in the batch or, by
// `has_text`, in the store. InvalidArgument: a record fails the check; the message says which.
absl::Status CheckBatch(const ImportBatch& batch,
                        const std::function<absl::StatusOr<bool>(const std::string&)>& has_text);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_IMPORT_BATCH_H_
