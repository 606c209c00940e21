#include "client/cli/tune/schedule_report.h"

#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output/format.h"
#include "client/cli/output/terminal.h"
#include "client/cli/workload_argument.h"
#include "common/schedule/trace.h"

namespace hone::cli {

bool IsCheck(const v1::CreateJobRequest& spec) {
  if (!IsTrace(spec.space())) return false;
  const absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(spec.space());
  return file.ok() && schedule::CheckDecided(file->parsed, "").ok();
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
