#include "server/confirm/screened_list.h"

#include <algorithm>

namespace hone::job {
namespace {

// The number of candidates that are kept for the confirmation, which uses some of the best. It
// counts equal programs once.
constexpr size_t kMaxScreened = 256;

}  // namespace

void ScreenedList::Add(Screened screened) {
  list_.push_back(std::move(screened));
  if (list_.size() < 2 * kMaxScreened) return;
  // The slower half cannot become finalists.
  std::nth_element(
      list_.begin(), list_.begin() + kMaxScreened, list_.end(),
      [this](const Screened& a, const Screened& b) { return ComesBefore(task_, a, b); });
  list_.resize(kMaxScreened);
}

void ScreenedList::AddProcesses(const std::vector<record::Record>& processes) {
  for (Screened& screened : list_) {
    if (screened.record.candidate != processes[0].candidate) continue;
    screened.again.insert(screened.again.end(), processes.begin(), processes.end());
    std::vector<double> all = {record::SteadyLatencyNs(screened.record.result)};
    for (record::Record& process : screened.again) {
      // The build's facts are not in the result of an artifact that was built before.
      process.result.facts = screened.record.result.facts;
      all.push_back(record::SteadyLatencyNs(process.result));
    }
    std::sort(all.begin(), all.end());
    screened.latency_ns = (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
  }
}

}  // namespace hone::job
