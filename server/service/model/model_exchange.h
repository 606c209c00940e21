#ifndef HONE_SERVER_SERVICE_MODEL_MODEL_EXCHANGE_H_
#define HONE_SERVER_SERVICE_MODEL_MODEL_EXCHANGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

namespace hone::service {

// The file in which `hone models export` carries a trained model to another server
// (proto/hone/v1/model_file.proto).

// Encodes a row with its bytes. `here` names this server; it becomes the origin of a model that
// this server has trained. An imported model keeps its origin.
std::string EncodeModelFile(const store::ModelRow& row, const std::string& here);

// Returns the row of a file, without an id. InvalidArgument: it is not such a file, is of another
// layout, truncated, damaged, or malformed; the message says which.
absl::StatusOr<store::ModelRow> DecodeModelFile(absl::string_view bytes);

// Checks whether a decoded row may be stored: its model is of this build and can be loaded, its
// predictions are numbers, its description is of this model, and its numbers are possible.
// InvalidArgument: something is wrong; the message says what.
absl::Status CheckImportedModel(const store::ModelRow& row, const job::TaskEnvironment& environment,
                                absl::Time now);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_MODEL_MODEL_EXCHANGE_H_
