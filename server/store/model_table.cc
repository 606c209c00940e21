#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

// length(bytes) reads the size from the header of the row, without reading the blob.
constexpr char kModelColumns[] =
    "id, name, feature_set, target, scope, version, records, workloads, created_unix_ms, metrics,"
    " length(bytes), target_text, origin";

// InvalidArgument: see Store::PutModel.
absl::Status CheckModel(const ModelRow& model) {
  if (model.key.name.empty() || model.key.target.empty()) {
    return absl::InvalidArgumentError("a model needs a name and a target");
  }
  if (model.bytes.empty() || model.bytes.size() > Store::kMaxModelBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a model has 1 to ", Store::kMaxModelBytes,
                                                   " bytes, not ", model.bytes.size()));
  }
  if (model.records < 0 || model.workloads < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a model cannot have ", model.records,
                                                   " records and ", model.workloads, " workloads"));
  }
  return absl::OkStatus();
}

absl::Status NoModelError(const ModelKey& key) {
  return absl::NotFoundError(absl::StrCat(
      "the store has no model '", key.name, "' on feature set '", key.feature_set, "' for target ",
      key.target, " and ",
      key.scope.empty() ? "every operator" : absl::StrCat("operator '", key.scope, "'")));
}

void BindModelKey(Statement& s, const ModelKey& key) {
  s.Bind(key.name).Bind(key.feature_set).Bind(key.target).Bind(key.scope);
}

ModelRow ReadModel(Statement& row) {
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
  model.target_text = row.Text();
  model.origin = row.Text();
  return model;
}

constexpr char kOfKey[] = "name = ? AND feature_set = ? AND target = ? AND scope = ?";

// The models of one key that somebody may ask for; null: there is none.
struct ModelsOfKey {
  ModelRow* own = nullptr;       // the newest that this server trained
  ModelRow* imported = nullptr;  // the newest imported one

  // REQUIRES: descending ids.
  void See(ModelRow& model) {
    ModelRow*& newest = model.origin.empty() ? own : imported;
    if (newest == nullptr) newest = &model;
  }
  // An import does not replace what the server has learned since, or learned from newer records.
  ModelRow* InUse() const {
    if (own == nullptr || imported == nullptr) return own != nullptr ? own : imported;
    const bool later = imported->id > own->id && imported->created_unix_ms > own->created_unix_ms;
    return later ? imported : own;
  }
};

absl::StatusOr<int64_t> InsertModel(Connection& connection, const ModelRow& model) {
  HONE_RETURN_IF_ERROR(CheckModel(model));
  HONE_ASSIGN_OR_RETURN(
      Statement insert,
      connection.Prepare("INSERT INTO model (name, feature_set, target, scope, version, records,"
                         " workloads, created_unix_ms, metrics, target_text, origin, bytes)"
                         " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"));
  BindModelKey(insert, model.key);
  insert.Bind(model.version).Bind(model.records).Bind(model.workloads);
  insert.Bind(model.created_unix_ms).Bind(model.metrics).Bind(model.target_text);
  insert.Bind(model.origin).BindBlob(model.bytes);
  HONE_RETURN_IF_ERROR(insert.Run());
  const std::string alike =
      absl::StrCat(kOfKey, model.origin.empty() ? " AND origin = ''" : " AND origin <> ''");
  HONE_ASSIGN_OR_RETURN(Statement forget, connection.Prepare(absl::StrCat(
                                              "DELETE FROM model WHERE ", alike,
                                              " AND id <= (SELECT id FROM model WHERE ", alike,
                                              " ORDER BY id DESC LIMIT 1 OFFSET ?)")));
  BindModelKey(forget, model.key);
  BindModelKey(forget, model.key);
  forget.Bind(int64_t{Store::kModelsKept});
  HONE_RETURN_IF_ERROR(forget.Run());
  return insert.Int64();
}

absl::StatusOr<ModelRow> SelectModelById(Connection& connection, int64_t id) {
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

absl::StatusOr<ModelRow> SelectModel(Connection& connection, const ModelKey& key) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(SelectModelSql()));
  BindModelKey(statement, key);
  HONE_ASSIGN_OR_RETURN(std::vector<ModelRow> models,
                        Connection::ReadAll(std::move(statement), ReadModel));
  ModelsOfKey of_key;
  for (ModelRow& model : models) of_key.See(model);
  if (models.empty()) return NoModelError(key);
  HONE_ASSIGN_OR_RETURN(ModelRow found, SelectModelById(connection, of_key.InUse()->id));
  found.in_use = true;
  return found;
}

absl::StatusOr<std::vector<ModelRow>> SelectModels(Connection& connection, const std::string& name,
                                                   const std::string& target, bool with_earlier) {
  HONE_ASSIGN_OR_RETURN(
      Statement statement,
      connection.Prepare(absl::StrCat("SELECT ", kModelColumns,
                                      " FROM model WHERE (?1 = '' OR name = ?1)"
                                      " AND (?2 = '' OR target = ?2) ORDER BY id DESC")));
  statement.Bind(name).Bind(target);
  HONE_ASSIGN_OR_RETURN(std::vector<ModelRow> models,
                        Connection::ReadAll(std::move(statement), ReadModel));
  std::map<ModelKey, ModelsOfKey> keys;
  for (ModelRow& model : models) keys[model.key].See(model);
  for (const auto& [key, of_key] : keys) of_key.InUse()->in_use = true;
  std::vector<ModelRow> listed;
  for (ModelRow& model : models) {
    const bool is_current = model.in_use || keys[model.key].imported == &model;
    if (is_current || with_earlier) listed.push_back(std::move(model));
  }
  return listed;
}

}  // namespace

std::string SelectModelSql() {
  return absl::StrCat("SELECT ", kModelColumns, " FROM model WHERE ", kOfKey, " ORDER BY id DESC");
}

void Store::PutModel(ModelRow model, absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) {
  const size_t bytes =
      kRowBytes + model.metrics.size() + model.target_text.size() + model.bytes.size();
  WriteForResult<int64_t>(
      [model = std::move(model)](Connection& c) { return InsertModel(c, model); }, std::move(done),
      bytes);
}

absl::StatusOr<ModelRow> Store::GetModel(const ModelKey& key) {
  return Get([&](Connection& c) { return SelectModel(c, key); });
}

absl::StatusOr<ModelRow> Store::GetModelById(int64_t id) {
  return Get([&](Connection& c) { return SelectModelById(c, id); });
}

absl::StatusOr<std::vector<ModelRow>> Store::ListModels(const std::string& name,
                                                        const std::string& target,
                                                        bool with_earlier) {
  return Get([&](Connection& c) { return SelectModels(c, name, target, with_earlier); });
}

}  // namespace hone::store
