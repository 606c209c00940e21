#include "client/cli/tune/tune_report.h"

#include <cstdio>
#include <optional>
#include <string>

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

bool PassedCheck(const v1::Job& job) {
  return job.given().record().result().outcome() == v1::OUTCOME_OK;
}

bool CheckIsConfirmed(const v1::Job& job) {
  // The server combines the results of the processes, so that this record is not a stored one.
  return PassedCheck(job) && job.given().record().policy().name() == "confirm";
}

void PrintCheck(const v1::Job& job) {
  const v1::Best& given = job.given();
  const v1::MeasureResult& result = given.record().result();
  const bool confirmed = CheckIsConfirmed(job);
  absl::PrintF("checked   correct: the largest error is %.3g of the allowed error\n",
               result.max_error());
  // The detail of a measurement that succeeded is what was unusual about it.
  absl::PrintF("latency   %s on %s%s\n",
               MarkUnconfirmed(FormatLatency(given.latency_ns()), confirmed), job.target(),
               result.detail().empty() ? "" : absl::StrCat(" (", result.detail(), ")"));
  // Some operators only move data.
  if (given.gflops() > 0) {
    absl::PrintF("GFLOP/s   %s", MarkUnconfirmed(FormatGflops(given.gflops()), confirmed));
    if (given.peak_gflops() > 0) {
      absl::PrintF(" (%s of the peak of %s)",
                   FormatShareOfPeak(given.gflops(), given.peak_gflops()),
                   FormatGflops(given.peak_gflops()));
    }
    absl::PrintF("\n");
    if (IsAbovePeak(given.gflops(), given.peak_gflops())) PrintWrapped(kAbovePeakText);
  }
  absl::PrintF("compiled  in %.1f ms\n", result.facts().compile_ms());
  if (job.has_default_schedule()) {
    const double untiled = job.default_schedule().latency_ns();
    if (untiled > 0 && given.latency_ns() > 0) {
      // As in the report of a search, a speed-up needs two confirmed latencies.
      const bool comparable = confirmed && job.default_confirmed();
      absl::PrintF(
          "default   %s%s\n", MarkUnconfirmed(FormatLatency(untiled), job.default_confirmed()),
          comparable ? absl::StrCat(", speed-up ", FormatSpeedUp(untiled, given.latency_ns()))
                     : "");
    }
  }
  // The best is unconfirmed only if nothing is published.
  const bool known = job.best().confirmed();
  const bool is_best =
      known && client::RecordOf(job.best()).candidate == client::RecordOf(given).candidate;
  const bool published_before = known && client::BestIsOfAnotherJob(job);
  std::string published = known ? MarkUnconfirmed(FormatLatency(job.best().latency_ns()),
                                                  client::LatencyIsConfirmed(job.best()))
                                : "";
  if (published_before) {
    absl::StrAppend(&published, ", published by job ", job.best().record().job_id());
  } else if (known && job.best().record().is_default()) {
    published += ", the untiled default";
  }
  if (known && !is_best) {
    absl::PrintF("best      %s\n", published);
  } else if (published_before) {
    PrintWrapped(
        absl::StrCat("best      this schedule, with ", published, "; that figure stays, because ",
                     job.best().pinned_unix_ms() > 0 ? "it is pinned"
                     : confirmed                     ? "this check is not clearly faster"
                                                     : "this check is not confirmed"),
        "          ");
  } else if (is_best && confirmed) {
    absl::PrintF("best      this schedule; no faster one is known\n");
  }
  if (!confirmed) {
    PrintWrapped(absl::StrCat(
        "\nnot confirmed: the schedule ",
        is_best
            ? absl::StrCat("stays the best, as job ", job.best().record().job_id(), " confirmed it")
            : "did not become the best",
        job.disturbed() > 0
            ? "; check it again when the machine is idle (\"hone doctor\" shows what disturbs it)"
            : "; check it again",
        job.note().empty() ? "" : absl::StrCat("\n", job.note())));
  }
  std::fflush(stdout);
}

void AddCheckJson(const v1::Job& job, Json& json) {
  const bool passed = PassedCheck(job);
  json["target"] = job.target();
  json["latency_ns"] = nullptr;
  json["gflops"] = nullptr;
  json["peak_gflops"] = nullptr;
  json["share_of_peak"] = nullptr;
  json["checked"] = passed;
  json["confirmed"] = CheckIsConfirmed(job);
  if (job.has_given()) {
    const v1::Best& given = job.given();
    const v1::MeasureResult& result = given.record().result();
    if (passed) {
      json["latency_ns"] = given.latency_ns();
      json["gflops"] = given.gflops();
      if (given.peak_gflops() > 0) {
        json["peak_gflops"] = given.peak_gflops();
        json["share_of_peak"] = given.gflops() / given.peak_gflops();
      }
    }
    json["outcome"] = client::OutcomeName(result.outcome());
    json["detail"] = result.detail();
    json["inputs"] = result.inputs();
    json["max_error"] = result.max_error();
    json["compile_ms"] = result.facts().compile_ms();
    json["policy"] = client::RecordOf(given).policy.Key();
  }
  json["default"] = DefaultJson(job);
  json["best"] = JobBestJson(job);
  json["job"] = job.id();
  json["state"] = client::JobStateName(job.state());
  json["note"] = job.note();
}

}  // namespace hone::cli
