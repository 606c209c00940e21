#ifndef HONE_SERVER_STORE_MODEL_COLUMNS_H_
#define HONE_SERVER_STORE_MODEL_COLUMNS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/store/store.h"

// The columns of the table model in the order in which they are read, the same in every database;
// see record_columns.h.
namespace hone::store {

// The size of a blob is read from its row's header, without the blob.
inline constexpr char kModelColumns[] =
    "id, name, feature_set, target, scope, version, records, workloads, created_unix_ms, metrics,"
    " length(bytes)";

// InvalidArgument: see Store::PutModel.
inline absl::Status CheckModel(const ModelRow& model) {
  if (model.key.name.empty() || model.key.target.empty()) {
    return absl::InvalidArgumentError("a model needs a name and a target");
  }
  if (model.bytes.empty() || model.bytes.size() > Store::kMaxModelBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a model of ", model.bytes.size(),
                                                   " bytes; it has 1 to ", Store::kMaxModelBytes));
  }
  if (model.records < 0 || model.workloads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model of ", model.records, " records and ", model.workloads, " workloads"));
  }
  return absl::OkStatus();
}

inline absl::Status NoModelError(const ModelKey& key) {
  return absl::NotFoundError(absl::StrCat(
      "the store has no model '", key.name, "' on feature set '", key.feature_set, "' for target ",
      key.target, " and ",
      key.scope.empty() ? "every operator" : absl::StrCat("operator '", key.scope, "'")));
}

template <typename Binder>
void BindModelKey(Binder& s, const ModelKey& key) {
  s.Bind(key.name).Bind(key.feature_set).Bind(key.target).Bind(key.scope);
}

template <typename Row>
ModelRow ReadModel(Row& row) {
  ModelRow model;
  model.id = row.Int64();
  model.key.name = row.Text();
  model.key.feature_set = row.Text();
  model.key.target = row.Text();
  model.key.scope = row.Text();
  model.version = row.Int64();
  model.records = row.Int64();
  model.workloads = row.Int64();
  model.created_unix_ms = row.Int64();
  model.metrics = row.Text();
  model.size = row.Int64();
  return model;
}

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_MODEL_COLUMNS_H_
