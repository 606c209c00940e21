#include "server/store/integrity_check.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite_status.h"

namespace hone::store {

absl::Status QuickCheck(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement check, connection.Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string answer = absl::StrReplaceAll(row ? check.Text() : "no answer", {{"\n", " "}});
  if (answer == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("store ", connection.path(), " is damaged: ", answer,
                                          "; ", DamagedAdvice(connection.path())));
}

IntegrityCheck::IntegrityCheck(std::unique_ptr<SqliteConnection> connection,
                               absl::AnyInvocable<void(const absl::Status&)> on_end)
    : connection_(std::move(connection)),
      thread_([this, on_end = std::move(on_end)]() mutable { on_end(QuickCheck(*connection_)); }) {}

IntegrityCheck::~IntegrityCheck() {
  connection_->StopEarly();
  thread_.join();
}

}  // namespace hone::store
