#include "server/confirm/spot_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hone::job {
namespace {

// Interchangeable devices differ by less than this factor, even if one is disturbed.
constexpr double kApart = 3;

}  // namespace

void SpotCheck::Ask(std::string worker, absl::Time deadline) {
  asked_.push_back(std::move(worker));
  deadline_ = deadline;
}

void SpotCheck::Report(absl::Time now, const std::string& worker,
                       const record::MeasureResult& result) {
  if (verdict_ != Verdict::kOpen || !IsWaiting(now)) return;
  deadline_ = absl::InfinitePast();
  // A killed runner says nothing about the candidate, so another worker is asked.
  if (result.outcome == record::Outcome::kDeviceLost ||
      result.outcome == record::Outcome::kOutOfMemory) {
    return;
  }
  std::string objection;
  const double seen = record::SteadyLatencyNs(result);
  if (result.outcome != record::Outcome::kOk) {
    objection = absl::StrCat(claimant(), " says that it is right, and ", worker, " has ",
                             record::OutcomeName(result.outcome), ": ", result.detail);
  } else if (seen > kApart * claimed_) {
    objection = absl::StrFormat("%s says that it takes %.0f ns, and %s measures %.0f ns",
                                claimant(), claimed_, worker, seen);
  }
  if (objection.empty()) {
    verdict_ = Verdict::kConfirmed;
  } else if (!objector_.empty()) {
    verdict_ = Verdict::kRejected;
  } else {
    objector_ = worker;
    objection_ = std::move(objection);
  }
}

void SpotCheck::Close() { verdict_ = objector_.empty() ? Verdict::kConfirmed : Verdict::kRejected; }

std::string SpotCheck::Outvoted() const { return verdict_ == Verdict::kConfirmed ? objector_ : ""; }

}  // namespace hone::job
