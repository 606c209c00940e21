#include "server/store/model_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/model_columns.h"

namespace hone::store {
namespace {

constexpr char kOfKey[] = "name = ? AND feature_set = ? AND target = ? AND scope = ?";

}  // namespace

std::string SelectModelSql() {
  return absl::StrCat("SELECT ", kModelColumns, ", bytes FROM model WHERE ", kOfKey,
                      " ORDER BY id DESC LIMIT 1");
}

absl::StatusOr<int64_t> InsertModel(SqliteConnection& connection, const ModelRow& model) {
  HONE_RETURN_IF_ERROR(CheckModel(model));
  {
    HONE_ASSIGN_OR_RETURN(
        Statement insert,
        connection.Prepare("INSERT INTO model (name, feature_set, target, scope, version, records,"
                           " workloads, created_unix_ms, metrics, bytes)"
                           " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    BindModelKey(insert, model.key);
    insert.Bind(model.version).Bind(model.records).Bind(model.workloads);
    insert.Bind(model.created_unix_ms).Bind(model.metrics).BindBlob(model.bytes);
    HONE_RETURN_IF_ERROR(insert.Run());
  }
  const int64_t id = connection.LastInsertId();
  HONE_ASSIGN_OR_RETURN(Statement forget, connection.Prepare(absl::StrCat(
                                              "DELETE FROM model WHERE ", kOfKey,
                                              " AND id <= (SELECT id FROM model WHERE ", kOfKey,
                                              " ORDER BY id DESC LIMIT 1 OFFSET ?)")));
  BindModelKey(forget, model.key);
  BindModelKey(forget, model.key);
  forget.Bind(int64_t{Store::kModelsKept});
  HONE_RETURN_IF_ERROR(forget.Run());
  return id;
}

absl::StatusOr<ModelRow> SelectModel(SqliteConnection& connection, const ModelKey& key) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(SelectModelSql()));
  BindModelKey(statement, key);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return NoModelError(key);
  ModelRow model = ReadModel(statement);
  model.bytes = statement.Blob();
  return model;
}

absl::StatusOr<ModelRow> SelectModelById(SqliteConnection& connection, int64_t id) {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare(absl::StrCat("SELECT ", kModelColumns,
                                                        ", bytes FROM model WHERE id = ?")));
  statement.Bind(id);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(absl::StrCat("the store has no model with id ", id));
  ModelRow model = ReadModel(statement);
  model.bytes = statement.Blob();
  return model;
}

absl::StatusOr<std::vector<ModelRow>> SelectModels(SqliteConnection& connection,
                                                   const std::string& name,
                                                   const std::string& target) {
  HONE_ASSIGN_OR_RETURN(
      Statement statement,
      connection.Prepare(absl::StrCat("SELECT ", kModelColumns,
                                      " FROM model WHERE id IN (SELECT MAX(id) FROM model"
                                      " GROUP BY name, feature_set, target, scope)"
                                      " AND (?1 = '' OR name = ?1) AND (?2 = '' OR target = ?2)"
                                      " ORDER BY id DESC")));
  statement.Bind(name).Bind(target);
  std::vector<ModelRow> models;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return models;
    models.push_back(ReadModel(statement));
  }
}

}  // namespace hone::store
