#include "server/service/offline_commands.h"

#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "server/service/exit_code.h"
#include "server/store/exchange/merge.h"
#include "server/store/sqlite/restore.h"
#include "server/store/store.h"

namespace hone::service {
namespace {

// Checks that the store exists, because opening a missing one would create it.
absl::Status CheckIsThere(const std::string& from) {
  struct stat info;
  if (absl::StartsWith(from, "postgres") || stat(from.c_str(), &info) == 0) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("--from ", from, ": there is no such file"));
}

absl::Status Restore(const std::string& store, const std::string& from) {
  HONE_ASSIGN_OR_RETURN(const store::RestoreReport report,
                        store::RestoreStore(store, from, absl::ToUnixMillis(absl::Now())));
  std::printf("%s holds %s of %s", store.c_str(), Counted(report.records, "record").c_str(),
              from.c_str());
  if (!report.kept_as.empty()) std::printf("; the old store is kept as %s", report.kept_as.c_str());
  std::printf("\n");
  return absl::OkStatus();
}

absl::Status Merge(const std::string& store, const std::string& from) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> source, store::OpenStore(from));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> into, store::OpenStore(store));
  HONE_ASSIGN_OR_RETURN(const store::ImportReport report, store::MergeStores(*into, *source));
  std::printf("%s added, %lld already there; %s newly published\n",
              Counted(report.added, "record").c_str(), static_cast<long long>(report.known),
              Counted(report.bests, "best").c_str());
  return absl::OkStatus();
}

}  // namespace

OfflineCommands::OfflineCommands(Command& app)
    : restore_(app.AddCommand(
          "restore", "Replace a store with a backup, and keep the old store under another name")),
      merge_(app.AddCommand("merge", "Add to a store the records and bests of another store")) {
  restore_.Footer(
      "Example:\n  hone-server restore --store /var/lib/hone/hone.db --from "
      "/backups/hone.db\nNo server may have the store open.");
  merge_.Footer(
      "Example:\n  hone-server merge --store /var/lib/hone/hone.db --from old/hone.db\n"
      "Either may be a PostgreSQL database: postgresql://user@host/name. No server may have\n"
      "one of the files open.");
  for (Command* const command : {&restore_, &merge_}) {
    command->Add("--store", store_, "The store that is changed", {Required()});
    command->Add("--from", from_,
                 command == &restore_ ? "A backup, or any store file" : "The other store",
                 {Required()});
  }
}

std::optional<int> OfflineCommands::Run() const {
  if (!restore_.Given() && !merge_.Given()) return std::nullopt;
  umask(077);  // only this user may read what a server keeps
  absl::Status status = CheckIsThere(from_);
  if (status.ok()) status = restore_.Given() ? Restore(store_, from_) : Merge(store_, from_);
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-server: %s\n", std::string(status.message()).c_str());
  return ExitCodeFor(status);
}

}  // namespace hone::service
