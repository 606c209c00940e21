// hone records backup, hone records compact.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/records.h"
#include "client/cli/session.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct CompactOptions {
  std::string keep;
  int keep_best = 0;
  bool dry_run = false;
};

absl::Status BackupStore(const Globals& globals, std::string path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  // A private server is on this machine, but not in this folder.
  if (session->private_server() != nullptr) path = std::filesystem::absolute(path).string();
  HONE_ASSIGN_OR_RETURN(const client::StoreBackup backup, session->connection().BackupStore(path));
  if (globals.json) {
    PrintJson({{"path", path}, {"size_bytes", backup.size_bytes}, {"records", backup.records}});
  } else {
    std::printf("%lld records in %s, %s; checked\n", static_cast<long long>(backup.records),
                path.c_str(), FormatBytes(backup.size_bytes).c_str());
  }
  return absl::OkStatus();
}

absl::Status CompactStore(const Globals& globals, const CompactOptions& options) {
  client::Retention retention{.keep_best = options.keep_best, .dry_run = options.dry_run};
  if (!options.keep.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Duration age, ParseDuration(options.keep));
    retention.keep_unix_ms = absl::ToUnixMillis(absl::Now() - age);
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const client::Compaction done,
                        session->connection().CompactStore(retention));
  if (globals.json) {
    PrintJson({{"dry_run", options.dry_run},
               {"records_removed", done.records_removed},
               {"jobs_removed", done.jobs_removed},
               {"texts_removed", done.texts_removed},
               {"artifacts_removed", done.artifacts_removed},
               {"bytes_before", done.bytes_before},
               {"bytes_after", done.bytes_after}});
    return absl::OkStatus();
  }
  std::printf(
      "%s %lld records, %lld jobs, %lld texts and %lld artifacts; the store has %s",
      options.dry_run ? "would remove" : "removed", static_cast<long long>(done.records_removed),
      static_cast<long long>(done.jobs_removed), static_cast<long long>(done.texts_removed),
      static_cast<long long>(done.artifacts_removed), FormatBytes(done.bytes_before).c_str());
  if (options.dry_run) {
    std::printf("\n");
  } else {
    std::printf(", now %s\n", FormatBytes(done.bytes_after).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecordStore(CLI::App& records, Globals& globals, Action& action) {
  CLI::App* const backup = records.add_subcommand(
      "backup", "Copy the server's store to a new file, while it is in use, and check the copy");
  auto path = std::make_shared<std::string>();
  backup->add_option("file", *path, "New file on the server's machine, by its whole path")
      ->required();
  AddGlobals(*backup, globals);
  backup->footer(
      "Examples:\n"
      "  hone records backup /backups/hone-2026-11-21.db\n"
      "To go back to it, with the server stopped:\n"
      "  hone-server restore --store /var/lib/hone/hone.db --from /backups/hone-2026-11-21.db");
  backup->callback([&globals, &action, path] {
    action = [&globals, path] { return BackupStore(globals, *path); };
  });

  CLI::App* const compact = records.add_subcommand(
      "compact", "Remove what is old, and give the store's unused space back");
  auto options = std::make_shared<CompactOptions>();
  compact->add_option("--keep", options->keep,
                      "What is younger than 90d, 1000h, … stays; without it nothing is removed");
  compact
      ->add_option("--keep-best", options->keep_best,
                   "Of each workload and target so many of the best stay, however old (default 32)")
      ->check(CLI::Range(1, 1'000'000));
  compact->add_flag("--dry-run", options->dry_run, "Only say what would be removed");
  AddGlobals(*compact, globals);
  compact->footer(
      "The published bests and the records of jobs under way always stay.\n"
      "Examples:\n"
      "  hone records compact --keep 90d --dry-run\n"
      "  hone records compact --keep 90d --keep-best 100");
  compact->callback([&globals, &action, options] {
    action = [&globals, options] { return CompactStore(globals, *options); };
  });
}

}  // namespace hone::cli
