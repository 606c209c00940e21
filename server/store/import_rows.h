#ifndef HONE_SERVER_STORE_IMPORT_ROWS_H_
#define HONE_SERVER_STORE_IMPORT_ROWS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

namespace hone::store {

// See Store::Import. Runs on the writer's connection inside a transaction.
absl::StatusOr<ImportReport> ImportRows(SqliteConnection& connection, const ImportBatch& batch,
                                        int64_t now_unix_ms);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_IMPORT_ROWS_H_
