#include "tests/fault/invariants.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "tests/integration/process.h"

namespace hone::fault {
namespace {

using record::Outcome;
using record::Record;

// A published record: it combines the rounds of a finalist.
bool IsCombined(const Record& record) { return record.result.processes > 0; }

Asked AskedOf(const Record& record) {
  return {record.job_id, record.candidate.space_digest, record.candidate.decisions,
          record.policy.name};
}

std::string Name(const Record& record) {
  return absl::StrCat("record ", record.id, " (job ", record.job_id, ", trial ", record.trial, ", ",
                      record.policy.name, ")");
}

}  // namespace

absl::StatusOr<std::vector<Record>> AllRecords(store::Store& store) {
  std::vector<Record> records;
  store::RecordQuery query{.page_size = 1000};
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<Record> page, store.Query(query));
    records.insert(records.end(), page.begin(), page.end());
    if (static_cast<int>(page.size()) < query.page_size) return records;
    query.after_id = page.back().id;
  }
}

Verdict CheckAcknowledged(const std::vector<Record>& records,
                          const std::vector<Acknowledged>& acknowledged) {
  Verdict verdict{.what = "every acknowledged measurement is there exactly once",
                  .looked_at = static_cast<int64_t>(acknowledged.size())};
  std::map<std::string, int> marks;
  std::map<Asked, int> asked;
  for (const Record& record : records) {
    if (IsCombined(record)) continue;
    ++marks[MarkOf(record.result.samples_ns)];
    ++asked[AskedOf(record)];
  }
  int64_t late = 0;
  for (const Acknowledged& result : acknowledged) {
    const std::string name =
        absl::StrCat("lease ", result.lease, " of job ", result.asked.job, " (",
                     record::OutcomeName(result.outcome), ", ", result.asked.policy, ")");
    const bool there = !result.mark.empty() && marks[result.mark] == 1;
    if (there) continue;
    if (result.outcome == Outcome::kOk && marks[result.mark] > 1) {
      verdict.violations.push_back(absl::StrCat(name, " is there ", marks[result.mark], " times"));
      continue;
    }
    // A result without samples cannot be told from other results of its candidate.
    if (result.stored && (result.outcome == Outcome::kOk || asked[result.asked] == 0)) {
      verdict.violations.push_back(
          absl::StrCat(name, " is not there, but the server said that it was stored"));
      continue;
    }
    // A result that was sent after its lease had ended need not be stored.
    if (result.outcome == Outcome::kOk) {
      ++late;
      if (result.grants_after == 0 && !result.by_several_servers && !result.cancelled) {
        verdict.violations.push_back(
            absl::StrCat(name, " is not there, and was not given out again"));
        continue;
      }
    }
    const bool handed_back = result.outcome == Outcome::kDeviceLost && result.grants_after > 0;
    // A server that continues the confirmation of another one may have other finalists.
    const bool not_needed = result.by_several_servers && result.asked.policy == "confirm";
    if (asked[result.asked] == 0 && !result.cancelled && !handed_back && !not_needed) {
      verdict.violations.push_back(absl::StrCat(name, ": its candidate has no record"));
    }
  }
  verdict.note = absl::StrCat(late, " came after their lease or its server's leadership had ended");
  return verdict;
}

Verdict CheckShown(const std::vector<Record>& records, const std::map<int64_t, Shown>& shown) {
  Verdict verdict{.what = "every record that a client was shown is there, unchanged",
                  .looked_at = static_cast<int64_t>(shown.size())};
  std::map<int64_t, Shown> held;
  for (const Record& record : records) held[record.id] = ShownOf(record);
  for (const auto& [id, expected] : shown) {
    auto found = held.find(id);
    if (found == held.end()) {
      verdict.violations.push_back(
          absl::StrCat("record ", id, " of job ", expected.job, " is gone"));
    } else if (!(found->second == expected)) {
      verdict.violations.push_back(absl::StrCat("record ", id, " is another one now"));
    }
  }
  return verdict;
}

Verdict CheckOnce(const std::vector<Record>& records) {
  Verdict verdict{.what = "no measurement is there twice",
                  .looked_at = static_cast<int64_t>(records.size())};
  std::map<std::string, std::string> marks;
  std::map<std::pair<std::string, int64_t>, std::string> trials;
  for (const Record& record : records) {
    if (IsCombined(record)) continue;
    const std::string mark = MarkOf(record.result.samples_ns);
    if (!mark.empty()) {
      const auto [other, is_new] = marks.emplace(mark, Name(record));
      if (!is_new) {
        verdict.violations.push_back(absl::StrCat(Name(record), " is ", other->second));
      }
    }
    if (record.policy.name != "screen") continue;
    const auto [other, is_new] =
        trials.emplace(std::pair(record.job_id, record.trial), Name(record));
    if (!is_new) {
      verdict.violations.push_back(
          absl::StrCat(Name(record), " is of the same trial as ", other->second));
    }
  }
  return verdict;
}

Verdict CheckJobs(store::Store& store) {
  Verdict verdict{.what = "each job has ended, or says why not"};
  std::map<std::string, int> states;
  std::string after;
  constexpr int kPage = 500;
  for (;;) {
    const auto page = store.ListJobs(kPage, after);
    if (!page.ok()) {
      verdict.violations.push_back(std::string(page.status().message()));
      return verdict;
    }
    for (const store::JobRow& job : *page) {
      ++verdict.looked_at;
      ++states[job.state];
      after = job.id;
      const bool ended = job.state == "done" || job.state == "cancelled" || job.state == "failed";
      if (!ended) {
        verdict.violations.push_back(absl::StrCat("job ", job.id, " is ", job.state));
      } else if (job.state == "failed" && job.error.empty()) {
        verdict.violations.push_back(absl::StrCat("job ", job.id, " failed and does not say why"));
      }
    }
    if (static_cast<int>(page->size()) < kPage) break;
  }
  verdict.note = absl::StrJoin(states, ", ", [](std::string* out, const auto& state) {
    absl::StrAppend(out, state.second, " ", state.first);
  });
  return verdict;
}

Verdict CheckBests(store::Store& store, const std::vector<Record>& records,
                   const std::map<std::string, v1::Best>& served) {
  Verdict verdict{.what = "the best of each workload is right, and its kernel is there"};
  using Key = std::tuple<std::string, std::string, double>;
  // Excludes candidates that failed when they were measured again, in the same job.
  std::set<Asked> failed;
  for (const Record& record : records) {
    if (record.policy.name == "confirm" && record.result.outcome != Outcome::kOk) {
      failed.insert(AskedOf(record));
    }
  }
  // The processes that measured a candidate in a job. A job that runs out of time publishes no
  // candidate with fewer processes than others, unless it is much faster, and its last round may be
  // cut, so that one process does not count.
  std::map<Asked, int> processes;
  for (const Record& record : records) {
    if (record.result.outcome == Outcome::kOk && !record.quarantined && !IsCombined(record)) {
      ++processes[AskedOf(record)];
    }
  }
  std::map<Key, const Record*> fastest;
  for (const Record& record : records) {
    const bool enough = IsCombined(record) || processes[AskedOf(record)] > record::kProcesses;
    if (record.policy.name != "confirm" || record.result.outcome != Outcome::kOk ||
        record.quarantined || !enough || failed.contains(AskedOf(record))) {
      continue;
    }
    const Record*& best = fastest[{record.workload_digest, record.target, record.tolerance}];
    if (best == nullptr || record.result.latency_ns < best->result.latency_ns) best = &record;
  }
  for (const auto& [key, confirmed] : fastest) {
    const auto& [workload, target, tolerance] = key;
    ++verdict.looked_at;
    const auto best =
        store.LookupBest({.workload_digest = workload, .target = target, .tolerance = tolerance});
    if (!best.ok()) {
      verdict.violations.push_back(
          absl::StrCat("workload ", workload, ": ", std::string(best.status().message())));
      continue;
    }
    const record::MeasureResult& result = best->record.result;
    // Simulated latencies differ by steps of five percent.
    if (result.latency_ns > 1.01 * confirmed->result.latency_ns) {
      verdict.violations.push_back(absl::StrFormat(
          "workload %s: %s takes %.0f ns (median of %d processes), and %s took %.0f ns (%d)",
          workload, Name(best->record), result.latency_ns, record::ProcessesOf(result),
          Name(*confirmed), confirmed->result.latency_ns,
          IsCombined(*confirmed) ? record::ProcessesOf(confirmed->result)
                                 : processes[AskedOf(*confirmed)]));
    }
    const auto artifact = store.GetArtifact(result.artifact_digest);
    if (!artifact.ok() || Sha256Of(*artifact) != result.artifact_digest) {
      verdict.violations.push_back(absl::StrCat("workload ", workload, ": artifact ",
                                                result.artifact_digest, " is not there, whole"));
    }
    const auto answer = served.find(workload);
    if (answer == served.end() || answer->second.record().id() != best->record.id) {
      verdict.violations.push_back(
          absl::StrCat("workload ", workload, ": the server did not answer ", Name(best->record)));
    }
  }
  return verdict;
}

Verdict CheckIntegrity(store::Store& store) {
  Verdict verdict{.what = "the store is sound", .looked_at = 1};
  const bool over = integration::Eventually(
      [&] { return store.Health().check != store::StoreHealth::Check::kUnderWay; });
  const store::StoreHealth health = store.Health();
  if (!over || health.check != store::StoreHealth::Check::kSound) {
    verdict.violations.push_back(
        over ? absl::StrCat("damaged or not checked: ", store.CheckWritable().message())
             : "the check does not end");
  }
  verdict.note = absl::StrCat(health.size_bytes, " bytes");
  return verdict;
}

}  // namespace hone::fault
