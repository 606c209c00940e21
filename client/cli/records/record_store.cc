// hone records backup, hone records compact.

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/session.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct CompactOptions {
  std::string keep;
  int keep_best = 0;
  bool by_policy = false;
  bool dry_run = false;
};

absl::Status BackupStore(const Globals& globals, std::string path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  // A private server runs on this machine, but with another working directory.
  if (session->private_server() != nullptr) path = std::filesystem::absolute(path).string();
  const absl::StatusOr<v1::BackupStoreResponse> made = session->connection().BackupStore(path);
  // A file that cannot be written is a failure in every command.
  if (absl::IsNotFound(made.status())) return WithExitCode(made.status(), kExitFailed);
  HONE_RETURN_IF_ERROR(made.status());
  const v1::BackupStoreResponse& backup = *made;
  if (globals.json) {
    return PrintJson(
        {{"path", path}, {"bytes", backup.size_bytes()}, {"record_count", backup.records()}});
  }
  PrintWrapped(absl::StrCat(Counted(backup.records(), "record"), " in ", path, ", ",
                            FormatBytes(backup.size_bytes()), "; checked"));
  return absl::OkStatus();
}

absl::Status CompactStore(const Globals& globals, const CompactOptions& options) {
  v1::CompactStoreRequest retention;
  retention.set_keep_best(options.keep_best);
  retention.set_by_policy(options.by_policy);
  retention.set_dry_run(options.dry_run);
  if (options.by_policy && (!options.keep.empty() || options.keep_best != 0)) {
    return absl::InvalidArgumentError(
        "--by-policy uses the limits of the server; omit --keep and --keep-best");
  }
  if (!options.keep.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Duration age, ParseDuration(options.keep));
    retention.set_keep_unix_ms(absl::ToUnixMillis(absl::Now() - age));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const v1::CompactStoreResponse done,
                        session->connection().CompactStore(retention));
  if (globals.json) {
    Json json = {{"dry_run", options.dry_run}};
    json.update(FieldsJson(done));
    return PrintJson(std::move(json));
  }
  const auto rows = [](int64_t count, absl::string_view noun, int64_t bytes) {
    return absl::StrCat(Counted(count, noun),
                        count == 0 ? "" : absl::StrCat(" (", FormatBytes(bytes), ")"));
  };
  PrintWrapped(absl::StrCat(
      options.dry_run ? "would remove " : "removed ",
      rows(done.records_removed(), "record", done.record_bytes()), ", ",
      rows(done.bests_removed(), "replaced best", done.best_bytes()), ", ",
      rows(done.jobs_removed(), "job", done.job_bytes()), ", ",
      rows(done.events_removed(), "event", done.event_bytes()), ", ",
      rows(done.texts_removed(), "text", done.text_bytes()), " and ",
      rows(done.artifacts_removed(), "artifact", done.artifact_bytes()), "; the store ",
      options.dry_run ? absl::StrCat("has ", FormatBytes(done.bytes_before()))
                      : absl::StrCat("had ", FormatBytes(done.bytes_before()), ", and now has ",
                                     FormatBytes(done.bytes_after()))));
  return absl::OkStatus();
}

}  // namespace

void AddRecordStore(Command& records, Globals& globals) {
  Command& backup = records.AddCommand(
      "backup", "Copy the server's store to a new file while it is in use, and check the copy");
  auto path = std::make_shared<std::string>();
  backup.Add("file", *path, "Absolute path of a new file on the server's machine", {Required()});
  CompleteWithoutTarget(
      backup, globals,
      "Examples:\n"
      "  hone records backup /backups/hone-2026-11-21.db\n"
      "To restore it, while the server is stopped:\n"
      "  hone-server restore --store /var/lib/hone/hone.db --from /backups/hone-2026-11-21.db",
      [&globals, path] { return BackupStore(globals, *path); });

  Command& compact =
      records.AddCommand("compact", "Remove old records, and free the unused space of the store");
  auto options = std::make_shared<CompactOptions>();
  compact.Add("--keep", options->keep,
              "Keep records that are younger than 90d, 1000h, …; without it nothing is removed");
  compact.Add("--keep-best", options->keep_best,
              "Keep this many of the best records of each workload and target, regardless of their "
              "age (default 32)",
              {Range(1, 1'000'000)});
  compact.AddFlag(
      "--by-policy", options->by_policy,
      "Remove now what the server removes once a day by its own limits (keep-records and "
      "others)");
  compact.AddFlag("--dry-run", options->dry_run, "Only show what would be removed");
  CompleteWithoutTarget(compact, globals,
                        "The published bests and the records of running jobs are always kept. A "
                        "server for a team compacts its store by itself, "
                        "so that this command is only needed to free more space.\n"
                        "Examples:\n"
                        "  hone records compact --by-policy --dry-run\n"
                        "  hone records compact --keep 90d --dry-run\n"
                        "  hone records compact --keep 90d --keep-best 100",
                        [&globals, options] { return CompactStore(globals, *options); });
}

}  // namespace hone::cli
