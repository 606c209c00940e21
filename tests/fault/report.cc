#include "tests/fault/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hone::fault {

std::string Violations(const ChaosReport& report) {
  std::string text;
  for (const Verdict& verdict : report.verdicts) {
    for (const std::string& violation : verdict.violations) {
      absl::StrAppend(&text, verdict.what, ": ", violation, "\n");
    }
  }
  return text;
}

std::string ToMarkdown(const ChaosReport& report) {
  const ScheduleOptions& schedule = report.options.schedule;
  std::string text = absl::StrFormat(
      "Seed %d on %s: %d faults of %d kinds struck in %.0f s%s. The last job ended %.1f s after "
      "the last fault. %d jobs were tuned to their end, %d commands of clients were "
      "interrupted, %d calls of workers failed, and programs were started %d times.\n\n",
      schedule.seed, schedule.store == StoreKind::kSqlite ? "SQLite" : "PostgreSQL",
      report.struck(), report.kinds_struck(), absl::ToDoubleSeconds(schedule.length),
      schedule.long_faults ? ", some of them for up to 25 s" : "",
      absl::ToDoubleSeconds(report.settled), report.jobs_done, report.commands_interrupted,
      report.troubled_calls, report.starts);
  if (!report.skipped.empty()) absl::StrAppend(&text, report.skipped, "\n\n");
  absl::StrAppend(&text, "| fault | struck | nothing to strike |\n|---|---:|---:|\n");
  for (const FaultKind kind : FaultsOf(schedule.store)) {
    const auto found = report.faults.find(kind);
    const ChaosReport::Count count =
        found == report.faults.end() ? ChaosReport::Count() : found->second;
    absl::StrAppend(&text, "| ", InfoOf(kind).name, " | ", count.struck, " | ", count.missed,
                    " |\n");
  }
  absl::StrAppend(&text, "\n| what must hold | looked at | verdict | |\n|---|---:|---|---|\n");
  for (const Verdict& verdict : report.verdicts) {
    absl::StrAppend(&text, "| ", verdict.what, " | ", verdict.looked_at, " | ",
                    verdict.violations.empty()
                        ? "holds"
                        : absl::StrCat("**broken ", verdict.violations.size(), " times**"),
                    " | ", verdict.note, " |\n");
  }
  if (const std::string violations = Violations(report); !violations.empty()) {
    absl::StrAppend(&text, "\n```\n", violations, "```\n");
  }
  return text;
}

}  // namespace hone::fault
