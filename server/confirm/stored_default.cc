#include "server/confirm/stored_default.h"

#include <algorithm>

#include "common/record/processes.h"

namespace hone::job {
namespace {

bool IsEarlier(const record::Record& a, const record::Record& b) { return a.id < b.id; }

}  // namespace

void StoredDefault::Add(const record::Record& record) {
  if (!record.is_default || record.quarantined || record.result.outcome != record::Outcome::kOk) {
    return;
  }
  if (record.result.processes == 0) {
    processes_[{record.job_id, record.policy.repeats}].push_back(record);
  } else if (record.result.processes >= record::kProcesses &&
             (!published_ || IsEarlier(*published_, record))) {
    published_ = record;
  }
}

std::optional<record::Record> StoredDefault::Confirmed() const {
  std::optional<record::Record> newest = published_;
  for (const auto& [job, processes] : processes_) {
    if (processes.size() < record::kProcesses) continue;
    const record::Record& last = *std::max_element(processes.begin(), processes.end(), IsEarlier);
    if (!record::IsConfirmed(last) || (newest && IsEarlier(last, *newest))) continue;
    newest = last;
    std::vector<record::MeasureResult> results;
    for (const record::Record& process : processes) results.push_back(process.result);
    newest->result = record::MedianOfProcesses(results);
  }
  return newest;
}

}  // namespace hone::job
