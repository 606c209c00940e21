#include "server/store/integrity_check.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite_status.h"

namespace hone::store {

IntegrityCheck::IntegrityCheck(std::unique_ptr<SqliteConnection> connection,
                               absl::AnyInvocable<void(absl::Status) &&> on_damage)
    : connection_(std::move(connection)),
      thread_([this, on_damage = std::move(on_damage)]() mutable {
        absl::Status status = Check();
        if (absl::IsDataLoss(status)) std::move(on_damage)(std::move(status));
      }) {}

IntegrityCheck::~IntegrityCheck() {
  connection_->StopEarly();
  thread_.join();
}

absl::Status IntegrityCheck::Check() {
  HONE_ASSIGN_OR_RETURN(Statement check, connection_->Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string answer = absl::StrReplaceAll(row ? check.Text() : "no answer", {{"\n", " "}});
  if (answer == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("store ", connection_->path(), " is damaged: ", answer,
                                          "; ", DamagedAdvice(connection_->path())));
}

}  // namespace hone::store
