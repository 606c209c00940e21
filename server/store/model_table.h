#ifndef HONE_SERVER_STORE_MODEL_TABLE_H_
#define HONE_SERVER_STORE_MODEL_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

// The table model: trained cost models, the newest few of a key. Errors are those of the Store's
// functions of the same purpose.
namespace hone::store {

absl::StatusOr<int64_t> InsertModel(SqliteConnection& connection, const ModelRow& model);

absl::StatusOr<ModelRow> SelectModel(SqliteConnection& connection, const ModelKey& key);
absl::StatusOr<ModelRow> SelectModelById(SqliteConnection& connection, int64_t id);
absl::StatusOr<std::vector<ModelRow>> SelectModels(SqliteConnection& connection,
                                                   const std::string& name,
                                                   const std::string& target);

// The statement of SelectModel, whose plan a test holds.
std::string SelectModelSql();

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_MODEL_TABLE_H_
