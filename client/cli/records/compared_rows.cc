#include "client/cli/records/compared_rows.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/record/processes.h"

namespace hone::cli {
namespace {

double LatencyNs(const record::Record& record) { return record::SteadyLatencyNs(record.result); }

// Whether a record is valid, and is the result of one process of a confirmation or of the default
// schedule.
bool IsProcess(const record::Record& record, const record::Record& best) {
  return record.result.outcome == record::Outcome::kOk && !record.quarantined &&
         record.result.inputs == best.result.inputs && !record.result.stopped_early &&
         record.tolerance == best.tolerance && record.result.processes == 0 &&
         (record.policy.name == "confirm" || record.is_default);
}

// The processes in which one job measured one candidate; not empty. The screening of a default
// schedule is one of them only if the job confirmed it with as few samples, which it does if the
// default is slow.
using Processes = std::vector<const record::Record*>;

std::vector<Processes> GroupsOf(const record::Record& best,
                                const std::vector<record::Record>& records) {
  std::vector<Processes> groups;
  for (const record::Record& record : records) {
    if (!IsProcess(record, best)) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group[0]->job_id == record.job_id && group[0]->candidate == record.candidate &&
             (!record.is_default || group[0]->policy.repeats == record.policy.repeats);
    });
    if (same == groups.end()) {
      groups.push_back({&record});
    } else {
      same->push_back(&record);
    }
  }
  return groups;
}

// Returns one record for each candidate of each job: the median of the processes in which the job
// measured the candidate, computed as a job does for its best. Leaves out candidates that were
// measured in fewer than record::kProcesses processes.
std::vector<record::Record> Combine(const record::Record& best,
                                    const std::vector<record::Record>& records) {
  std::vector<record::Record> combined;
  for (const Processes& group : GroupsOf(best, records)) {
    if (group.size() < record::kProcesses || group.back()->policy.name != "confirm") continue;
    std::vector<record::MeasureResult> results;
    for (const record::Record* record : group) results.push_back(record->result);
    combined.push_back(*group.back());
    combined.back().result = record::MedianOfProcesses(results);
  }
  return combined;
}

// Returns the digest of a candidate's program, which only records of builds contain; "" without
// such a record.
std::string ProgramOf(const record::Candidate& candidate,
                      const std::vector<record::Record>& records) {
  for (const record::Record& record : records) {
    const std::string& program = record.result.facts.program_digest;
    if (record.candidate == candidate && !program.empty()) return program;
  }
  return "";
}

// Tells whether records measured another program than the best. Candidates may have equal programs.
class OtherPrograms {
 public:
  OtherPrograms(const record::Record& best, const std::vector<record::Record>& records)
      : records_(records), best_(best.candidate), best_program_(ProgramOf(best_, records)) {}

  bool Has(const record::Record& record) const {
    if (record.candidate == best_) return false;
    return best_program_.empty() || ProgramOf(record.candidate, records_) != best_program_;
  }

 private:
  const std::vector<record::Record>& records_;
  const record::Candidate& best_;
  const std::string best_program_;
};

}  // namespace

std::vector<ComparedRow> RowsOf(const record::Record& best,
                                const std::vector<record::Record>& records) {
  const OtherPrograms programs(best, records);
  std::optional<record::Record> untiled;
  std::vector<record::Record> others;
  for (const record::Record& record : Combine(best, records)) {  // in the order of jobs
    if (record.is_default) {
      untiled = record;
      continue;
    }
    if (!programs.Has(record)) continue;
    std::erase_if(others,
                  [&](const record::Record& other) { return other.candidate == record.candidate; });
    others.push_back(record);
  }
  std::vector<ComparedRow> rows;
  const auto add = [&](const char* name, const record::Record& record) {
    rows.push_back({name, record, LatencyNs(record)});
  };
  if (untiled) add("default", *untiled);
  add("best", best);
  const auto runner_up = std::min_element(
      others.begin(), others.end(),
      [](const record::Record& a, const record::Record& b) { return LatencyNs(a) < LatencyNs(b); });
  if (runner_up != others.end()) add("runner-up", *runner_up);
  return rows;
}

std::optional<record::Record> BestOn(const std::string& inputs, const record::Record& best,
                                     const std::vector<record::Record>& records) {
  record::Record other = best;
  other.result.inputs = inputs;
  std::optional<record::Record> latest;
  for (record::Record& record : Combine(other, records)) {  // in the order of jobs
    if (record.candidate == best.candidate) latest = std::move(record);
  }
  return latest;
}

std::string WhyMissing(bool is_default, const record::Record& best,
                       const std::vector<record::Record>& records) {
  const OtherPrograms programs(best, records);
  const auto is_such = [&](const record::Record& record) {
    return is_default ? record.is_default : !record.is_default && programs.Has(record);
  };
  size_t most = 0;
  for (const auto& group : GroupsOf(best, records)) {
    if (is_such(*group[0])) most = std::max(most, group.size());
  }
  const std::string in_processes =
      most == 0 ? "" : absl::StrCat("; the most is ", most, most == 1 ? " process" : " processes");
  if (!is_default) {
    return absl::StrCat(
        "no runner-up: no job has measured another program in ", record::kProcesses,
        " undisturbed processes", in_processes,
        ". With more trials or time, or less other work on the machine, a search confirms "
        "more candidates");
  }
  return absl::StrCat(
      "no default: no job has measured the untiled default in ", record::kProcesses,
      " undisturbed processes", in_processes,
      ". A search confirms it too, unless that takes too much of its time or other work "
      "disturbs it");
}

}  // namespace hone::cli
