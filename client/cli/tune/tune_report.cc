#include "client/cli/tune/tune_report.h"

#include <cstdio>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/output/format.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "common/base/counted.h"
#include "common/record/processes.h"

namespace hone::cli {
namespace {

// The default schedule, if it was measured less often than the best, seems faster only if it takes
// less than this fraction of the time.
constexpr double kSeemsFaster = 0.95;

std::string AgeOf(const v1::Best& best) {
  return FormatAge(absl::Now() - absl::FromUnixMillis(best.record().created_unix_ms()));
}

}  // namespace

double PeakOf(const v1::Job& job) {
  for (const v1::Best* best : {&job.best(), &job.default_schedule()}) {
    if (best->peak_gflops() > 0) return best->peak_gflops();
  }
  return 0;
}

void PrintTuneReport(const v1::Job& job, const std::string& title, double peak, bool trace) {
  PrintWrapped(absl::StrCat("job ", job.id(), ": ", title, " on ", job.target(), ": ",
                            Counted(job.trials(), "trial"), " in ",
                            FormatClock(absl::Milliseconds(job.wall_ms()))));
  absl::PrintF("\n");
  Table table(
      {Left(""), Right("latency"), Right("GFLOP/s"), Right("share of peak"), Right("speed-up")});
  const bool confirmed = job.best().confirmed();
  const bool certain = job.has_best() && client::LatencyIsConfirmed(job.best());
  // A speed-up is shown if both latencies were measured in the same way.
  const bool comparable = job.default_confirmed() && certain;
  const double base = comparable ? job.default_schedule().latency_ns() : 0;
  const auto add = [&](const char* name, const v1::Best* best, bool is_confirmed) {
    if (best == nullptr) return;
    const double latency = best->latency_ns();
    table.AddRow({name, MarkUnconfirmed(FormatLatency(latency), is_confirmed),
                  MarkUnconfirmed(FormatGflops(best->gflops()), is_confirmed),
                  FormatShareOfPeak(best->gflops(), best->peak_gflops()),
                  FormatSpeedUp(base, latency)});
  };
  const bool default_confirmed = job.default_confirmed();
  add(default_confirmed ? "default" : "default, not confirmed",
      job.has_default_schedule() ? &job.default_schedule() : nullptr, default_confirmed);
  const bool earlier = client::BestIsOfAnotherJob(job);
  if (earlier && job.has_own_best()) {
    add("best of this run", &job.own_best(), client::LatencyIsConfirmed(job.own_best()));
  }
  add(earlier     ? "best known"
      : confirmed ? "best"
                  : "best, not confirmed",
      job.has_best() ? &job.best() : nullptr, certain);
  // A failed job has no row.
  if (job.has_best() || job.has_default_schedule()) table.Print();
  for (const v1::Best* shown : {&job.best(), &job.own_best(), &job.default_schedule()}) {
    if (!IsAbovePeak(shown->gflops(), shown->peak_gflops())) continue;
    PrintWrapped(absl::StrCat("\n", kAbovePeakText));
    break;
  }
  const bool pinned = job.has_best() && job.best().pinned_unix_ms() > 0;
  if (pinned) {
    PrintWrapped(absl::StrCat("\nthe best known, of job ", job.best().record().job_id(), ", was ",
                              PinText(job.best()), "; jobs do not replace it"));
  } else if (earlier) {
    PrintWrapped(absl::StrCat("\nthe best known is from job ", job.best().record().job_id(), ", ",
                              FormatTime(job.best().record().created_unix_ms()), ", ",
                              AgeOf(job.best()),
                              "; this run confirmed nothing that is clearly faster"));
  }
  if (const int processes = job.has_best() ? job.best().processes() : 0;
      certain && processes < record::kProcesses) {
    const absl::string_view count =
        processes == 1 ? "one undisturbed process" : "two undisturbed processes";
    PrintWrapped(absl::StrCat("\n",
                              earlier ? absl::StrCat("job ", job.best().record().job_id(),
                                                     " measured the best known in only ")
                                      : "the best was measured in only ",
                              count, ", not three, so that its latency is less certain"));
  }
  if (confirmed && !certain) {
    PrintWrapped(
        "\nother work disturbed every process that measured the best: its latency, marked with ~, "
        "may be too high");
  }
  const bool default_seems_faster =
      job.has_best() && job.has_default_schedule() && !job.default_confirmed() &&
      job.default_schedule().latency_ns() > 0 &&
      job.default_schedule().latency_ns() < kSeemsFaster * job.best().latency_ns();
  if (default_seems_faster) {
    PrintWrapped(
        "\nthe untiled default seems faster, but it was not measured as often as a best must be");
  }
  if (confirmed && !earlier && !pinned && job.best().record().is_default()) {
    // A note says why a faster candidate was not confirmed.
    PrintWrapped(
        absl::StrCat("\nthe best is the untiled default",
                     job.note().empty() ? ": no candidate of this run was clearly faster" : ""));
  }
  // If the note already names the disturbance, it also explains its effect.
  const bool noted = !job.disturbance().empty() && absl::StrContains(job.note(), job.disturbance());
  if (job.disturbed() > 0 && !noted) {
    PrintWrapped(absl::StrCat(
        "\nother work disturbed ", Counted(job.disturbed(), "measurement"), ", so that ",
        job.disturbed() == 1 ? "it does" : "they do", " not count; the last: ", job.disturbance(),
        ". Stop other programs on that machine, or measure when it is idle; \"hone doctor\" shows "
        "what disturbs this machine"));
  }
  if (job.has_best() && !confirmed) {
    PrintWrapped("\nnot confirmed: \"hone best\" does not return it");
  }
  if (!job.note().empty()) PrintWrapped(absl::StrCat("\n", job.note()));
  if (job.has_best() && peak > 0) {
    PrintWrapped(absl::StrCat("\npeak: ", FormatGflops(peak),
                              " GFLOP/s, measured with fused multiply-adds"));
  }
  if (trace && job.has_best()) {
    absl::PrintF("\nbest schedule:\n");
    PrintText(job.best().trace());
  }
  std::fflush(stdout);
}

}  // namespace hone::cli
