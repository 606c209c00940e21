#include "server/service/offline_commands.h"

#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/command_line.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "server/service/exit_code.h"
#include "server/store/exchange/merge.h"
#include "server/store/sqlite/restore.h"
#include "server/store/store.h"

namespace hone::service {
namespace {

constexpr char kRestore[] =
    "Replace a store with a backup, and keep the old store under another name";
constexpr char kMerge[] = "Add to a store the records and bests of another store";

struct OfflineFlags {
  std::string store;
  std::string from;
};

// Checks that the store exists, because opening a missing one would create it.
absl::Status CheckIsThere(const std::string& from) {
  struct stat info;
  if (absl::StartsWith(from, "postgres") || stat(from.c_str(), &info) == 0) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("--from ", from, ": there is no such file"));
}

absl::Status Restore(const OfflineFlags& flags) {
  HONE_ASSIGN_OR_RETURN(
      const store::RestoreReport report,
      store::RestoreStore(flags.store, flags.from, absl::ToUnixMillis(absl::Now())));
  std::printf("%s holds %s of %s", flags.store.c_str(), Counted(report.records, "record").c_str(),
              flags.from.c_str());
  if (!report.kept_as.empty()) std::printf("; the old store is kept as %s", report.kept_as.c_str());
  std::printf("\n");
  return absl::OkStatus();
}

absl::Status Merge(const OfflineFlags& flags) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> from, store::OpenStore(flags.from));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> into, store::OpenStore(flags.store));
  HONE_ASSIGN_OR_RETURN(const store::ImportReport report, store::MergeStores(*into, *from));
  std::printf("%s added, %lld already there; %s newly published\n",
              Counted(report.added, "record").c_str(), static_cast<long long>(report.known),
              Counted(report.bests, "best").c_str());
  return absl::OkStatus();
}

}  // namespace

std::array<const Command*, 2> ListOfflineCommands(Command& app) {
  return {&app.AddCommand("restore", kRestore), &app.AddCommand("merge", kMerge)};
}

std::optional<int> RunOfflineCommand(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name != "restore" && name != "merge") return std::nullopt;
  const bool restore = name == "restore";
  Command app(restore ? kRestore : kMerge, absl::StrCat("hone-server ", name));
  app.Footer(restore
                 ? "Example:\n  hone-server restore --store /var/lib/hone/hone.db --from "
                   "/backups/hone.db\nNo server may have the store open."
                 : "Example:\n  hone-server merge --store /var/lib/hone/hone.db --from "
                   "old/hone.db\nEither may be a PostgreSQL database: postgresql://user@host/name."
                   " No server may have\none of the files open.");
  OfflineFlags flags;
  app.Add("--store", flags.store, "The store that is changed", {Required()});
  app.Add("--from", flags.from, restore ? "A backup, or any store file" : "The other store",
          {Required()});
  if (const std::optional<int> code = app.ParseOrExit(argc - 1, argv + 1)) return *code;
  umask(077);  // only this user may read what a server keeps
  absl::Status status = CheckIsThere(flags.from);
  if (status.ok()) status = restore ? Restore(flags) : Merge(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-server: %s\n", std::string(status.message()).c_str());
  return ExitCodeFor(status);
}

}  // namespace hone::service
