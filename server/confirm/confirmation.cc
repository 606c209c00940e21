#include "server/confirm/confirmation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "common/base/median.h"
#include "common/base/rng.h"
#include "common/record/processes.h"

namespace hone::job {
namespace {

constexpr int kReplicates = 400;
constexpr uint64_t kShuffle = 1;
constexpr uint64_t kBootstrap = 2;

using RoundPair = std::pair<const record::MeasureResult*, const record::MeasureResult*>;

// Returns the results of the rounds in which both finalists have one.
std::vector<RoundPair> CommonRounds(const std::map<int, record::MeasureResult>& a,
                                    const std::map<int, record::MeasureResult>& b) {
  std::vector<RoundPair> common;
  for (const auto& [round, left] : a) {
    const auto right = b.find(round);
    if (right != b.end()) common.push_back({&left, &right->second});
  }
  return common;
}

// Returns the steady latency of one process after resampling its samples. `drawn` is scratch
// memory.
double Resample(const record::MeasureResult& result, Rng& rng, std::vector<double>& drawn) {
  const double steady = record::SteadyLatencyNs(result);
  if (result.samples_ns.empty()) return steady;
  drawn.resize(result.samples_ns.size());
  for (double& sample : drawn) sample = result.samples_ns[rng.Below(drawn.size())];
  return MedianInPlace(absl::MakeSpan(drawn)) * steady / result.latency_ns;
}

}  // namespace

Confirmation::Confirmation(int finalists, int incumbent, uint64_t seed, ConfirmationOptions options)
    : seed_(seed), options_(options), incumbent_(incumbent), entries_(finalists) {}

std::vector<int> Confirmation::Left() const {
  std::vector<int> left;
  for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
    if (!entries_[i].out) left.push_back(i);
  }
  return left;
}

bool Confirmation::CountsEarlier(int finalist) const {
  const Entry& entry = entries_[finalist];
  const int own = static_cast<int>(entry.rounds.size());
  const int all = own + static_cast<int>(entry.earlier.size());
  if (own >= options_.min_rounds) return false;
  // The yardstick's screening takes so few samples that a disturbance goes unnoticed. The median of
  // enough processes is safe from it, but the mean of two is not.
  return finalist != yardstick_ || own == 0 || all >= options_.min_rounds;
}

int Confirmation::Processes(int finalist) const {
  const Entry& entry = entries_[finalist];
  const size_t earlier = CountsEarlier(finalist) ? entry.earlier.size() : 0;
  return entry.OwnProcesses() + static_cast<int>(earlier);
}

bool Confirmation::AnyIsDisturbed() const {
  const std::vector<int> left = Left();
  return std::any_of(left.begin(), left.end(), [&](int finalist) { return !HasResult(finalist); });
}

std::vector<int> Confirmation::NextRound() {
  if (round_ > 0) {
    const std::vector<int> ranking = Ranking();
    // The second stays until it has run in as many processes as the best, to be compared with it.
    const size_t first_to_drop = round_ < options_.min_rounds ? 2 : 1;
    // Each of the first rounds halves the finalists.
    const size_t half = round_ < options_.min_rounds ? (ranking.size() + 1) / 2 : 0;
    const size_t most = std::max(half, static_cast<size_t>(options_.last_finalists));
    for (size_t i = first_to_drop; i < ranking.size(); ++i) {
      // Intervals are expensive, so they are computed only for finalists that look slower.
      const double least = round_ == 1 ? options_.drop_first : options_.drop_above;
      const bool surely_slower =
          Median(Ratios(ranking[i], ranking[0])) > least &&
          Compare(ranking[i], ranking[0]).low > (round_ == 1 ? options_.drop_first : 0);
      const bool far_behind = i >= most && ranking[i] != incumbent_;
      if (surely_slower || far_behind) entries_[ranking[i]].out = true;
    }
    for (const int finalist : Left()) {
      const bool hopeless = round_ >= options_.min_rounds && !ranking.empty();
      if (hopeless && !HasResult(finalist)) entries_[finalist].out = true;
    }
    if (Decided()) return {};
  }
  std::vector<int> order = Left();
  if (yardstick_ >= 0) {
    const Entry& entry = entries_[yardstick_];
    const bool enough = Processes(yardstick_) >= options_.min_rounds;
    if (entry.out && !entry.failed && !enough) order.push_back(yardstick_);
  }
  for (Entry& entry : entries_) entry.reported = false;
  Rng rng(seed_, kShuffle, round_);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
  if (round_ == 0) {
    // This round may be cut. The fastest finalist runs first, and the yardstick last.
    const auto place = [&](int finalist) {
      return finalist == 0 ? 0 : finalist == yardstick_ ? 2 : 1;
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return place(a) < place(b); });
  }
  ++round_;
  pending_ = static_cast<int>(order.size());
  return order;
}

void Confirmation::Report(int finalist, const record::MeasureResult& result) {
  --pending_;
  Entry& entry = entries_[finalist];
  entry.reported = true;
  if (result.outcome == record::Outcome::kOk && result.latency_ns > 0) {
    entry.rounds[round_] = result;
  } else {
    entry.out = entry.failed = true;
  }
}

void Confirmation::ReportDisturbed(int finalist) {
  --pending_;
  entries_[finalist].reported = true;
}

void Confirmation::ReportDisturbed(int finalist, const record::MeasureResult& result) {
  ReportDisturbed(finalist);
  entries_[finalist].disturbed[round_] = result;
}

void Confirmation::AddEarlier(int finalist, std::vector<record::MeasureResult> results) {
  entries_[finalist].earlier = std::move(results);
}

void Confirmation::LimitRuns(double runs) {
  const std::vector<int> ranking = Ranking();
  if (ranking.empty()) return;
  const int missing = options_.min_rounds - entries_[ranking[0]].OwnProcesses();
  if (missing <= 0) return;
  for (size_t i = 1; i < ranking.size(); ++i) {
    const bool fits = static_cast<double>(i + 1) * missing <= runs;
    if (!fits && ranking[i] != incumbent_) entries_[ranking[i]].out = true;
  }
}

void Confirmation::SetYardstick(int finalist, bool competes) {
  yardstick_ = finalist;
  if (!competes) entries_[finalist].out = true;
}

bool Confirmation::CutRound() {
  const auto has_result = [&](const Entry& entry) {
    return !entry.out && (round_ > 1 || entry.reported || !entry.earlier.empty());
  };
  if (std::none_of(entries_.begin(), entries_.end(), has_result)) return false;
  for (Entry& entry : entries_) {
    if (round_ == 1) {
      entry.out = entry.out || (!entry.reported && entry.earlier.empty());
    } else if (entry.OwnProcesses() + entry.earlier.size() > 1) {
      entry.rounds.erase(round_);
      entry.disturbed.erase(round_);
    }
  }
  pending_ = 0;
  return true;
}

void Confirmation::BeginAgain(int winner, int incumbent) {
  entries_.resize(std::max(entries_.size(), static_cast<size_t>(incumbent) + 1));
  for (Entry& entry : entries_) entry.out = true;
  Entry again;
  if (CountsEarlier(winner)) again.earlier = std::move(entries_[winner].earlier);
  for (auto& [round, result] : entries_[winner].rounds) again.earlier.push_back(std::move(result));
  entries_[winner] = std::move(again);
  entries_[incumbent] = Entry();
  yardstick_ = -1;
  incumbent_ = incumbent;
  round_ = 0;
}

std::vector<double> Confirmation::Ratios(int a, int b) const {
  std::vector<double> ratios;
  for (const auto& [left, right] : CommonRounds(entries_[a].rounds, entries_[b].rounds)) {
    ratios.push_back(std::log(record::SteadyLatencyNs(*left) / record::SteadyLatencyNs(*right)));
  }
  if (!ratios.empty()) return ratios;
  return {std::log(record::SteadyLatencyNs(Combined(a)) / record::SteadyLatencyNs(Combined(b)))};
}

Confirmation::Interval Confirmation::Compare(int a, int b) const {
  const std::vector<RoundPair> common = CommonRounds(entries_[a].rounds, entries_[b].rounds);
  std::vector<double> ratios = Ratios(a, b);
  Interval interval{.median = Median(ratios)};
  if (common.empty()) {
    interval.low = interval.median - options_.drop_first;
    interval.high = interval.median + options_.drop_first;
    return interval;
  }
  const size_t rounds = common.size();
  Rng rng(seed_, kBootstrap, a, b);
  std::vector<double> medians, drawn;
  for (int replicate = 0; replicate < kReplicates; ++replicate) {
    for (size_t i = 0; i < rounds; ++i) {
      const auto& [left, right] = common[rng.Below(rounds)];
      ratios[i] = Resample(*left, rng, drawn);
      ratios[i] = std::log(ratios[i] / Resample(*right, rng, drawn));
    }
    medians.push_back(MedianInPlace(absl::MakeSpan(ratios)));
  }
  std::sort(medians.begin(), medians.end());
  interval.low = medians[kReplicates / 40];
  interval.high = medians[kReplicates - 1 - kReplicates / 40];
  return interval;
}

std::vector<int> Confirmation::Ranking() const {
  std::vector<int> left = Left();
  if (round_ == 0) return left;
  std::erase_if(left, [&](int finalist) { return !HasResult(finalist); });
  if (left.empty()) return left;
  const int pivot = left[0];
  int most = 0;  // processes, up to as many as are required
  for (const int finalist : left) most = std::max(most, Processes(finalist));
  most = std::min(most, options_.min_rounds);
  std::map<int, double> ratios;
  double least = std::numeric_limits<double>::infinity();  // of those with enough processes
  for (int finalist : left) {
    ratios[finalist] = Median(Ratios(finalist, pivot));
    if (Processes(finalist) >= most) least = std::min(least, ratios[finalist]);
  }
  std::vector<std::tuple<bool, double, int>> order;
  for (int finalist : left) {
    const bool few = Processes(finalist) < most;
    const bool clearly_faster = ratios[finalist] < least - options_.drop_first;
    order.push_back({few && !clearly_faster, ratios[finalist], finalist});
  }
  std::sort(order.begin(), order.end());
  std::vector<int> ranking;
  for (const auto& [few, ratio, finalist] : order) ranking.push_back(finalist);
  auto incumbent = std::find(ranking.begin(), ranking.end(), incumbent_);
  if (incumbent != ranking.end() && incumbent != ranking.begin() &&
      Compare(ranking[0], incumbent_).high >= 0) {
    std::rotate(ranking.begin(), incumbent, incumbent + 1);
  }
  return ranking;
}

bool Confirmation::Decided() const {
  if (Left().empty() || round_ >= 2 * options_.max_rounds) return true;
  const std::vector<int> ranking = Ranking();
  if (ranking.empty()) return false;  // all processes were disturbed
  const auto is_measured = [&](int finalist) {
    return entries_[finalist].OwnProcesses() >= options_.min_rounds;
  };
  if (!is_measured(ranking[0])) return false;
  if (round_ >= options_.max_rounds || ranking.size() == 1) return true;
  return is_measured(ranking[1]) && Compare(ranking[1], ranking[0]).low > 0;
}

record::MeasureResult Confirmation::Combined(int finalist) const {
  const Entry& entry = entries_[finalist];
  std::vector<record::MeasureResult> results;
  if (CountsEarlier(finalist)) results = entry.earlier;
  for (const auto& [round, result] : entry.rounds) results.push_back(result);
  if (!results.empty()) return record::MedianOfProcesses(results);
  const auto fastest = std::min_element(
      entry.disturbed.begin(), entry.disturbed.end(), [](const auto& a, const auto& b) {
        return record::SteadyLatencyNs(a.second) < record::SteadyLatencyNs(b.second);
      });
  return record::MedianOfProcesses({fastest->second});
}

}  // namespace hone::job
