#ifndef HONE_SERVER_STORE_SQLITE_BACKUP_H_
#define HONE_SERVER_STORE_SQLITE_BACKUP_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hone::store {

// See Store::Backup. `store`: the path of a SQLite store that this process has open.
absl::StatusOr<BackupReport> BackUp(const std::string& store, const std::string& path,
                                    const std::function<bool()>& cancelled);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_BACKUP_H_
