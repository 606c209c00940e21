#include "server/search/program_source.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace hone::search {
namespace {

// Of a space; some 50 KB each. A table that is full starts anew.
constexpr int kStructures = 256;
constexpr int kReplaysBefore = 3;            // of a structure before it is recorded
constexpr int64_t kReplaysPerRecording = 8;  // cost as much, with all that follows
constexpr int64_t kOnCredit = 4;             // recordings of a space
constexpr size_t kRemembered = 256;          // vectors of a space that were replayed

}  // namespace

ProgramSource::ProgramSource(const SearchContext* context)
    : context_(context), spaces_(context->spaces.size()) {
  for (Space& space : spaces_) space.workers.resize(std::max(1, context->threads));
}
ProgramSource::~ProgramSource() = default;

void ProgramSource::Visit(size_t thread, absl::Span<const Point* const> points,
                          absl::FunctionRef<void(size_t, const ir::Program*)> visit) {
  std::vector<std::vector<size_t>> of_space(spaces_.size());
  for (size_t i = 0; i < points.size(); ++i) of_space[points[i]->space].push_back(i);
  for (size_t s = 0; s < of_space.size(); ++s) {
    Space& space = spaces_[s];
    Worker& worker = space.workers[thread];
    worker.counts.points += static_cast<int64_t>(of_space[s].size());
    if (of_space[s].empty()) continue;
    if (worker.frame != nullptr && worker.known != space.table->structures())
      Refresh(space, worker);
    for (size_t begin = 0; begin < of_space[s].size(); begin += recorded::kLanes)
      VisitBatch(space, worker, points,
                 absl::MakeConstSpan(of_space[s]).subspan(begin, recorded::kLanes), visit);
  }
}

void ProgramSource::VisitBatch(Space& space, Worker& worker, absl::Span<const Point* const> points,
                               absl::Span<const size_t> batch,
                               absl::FunctionRef<void(size_t, const ir::Program*)> visit) {
  absl::Span<const int64_t> lanes[recorded::kLanes];
  for (size_t lane = 0; lane < batch.size(); ++lane) lanes[lane] = points[batch[lane]]->decisions;
  absl::InlinedVector<std::pair<size_t, uint64_t>, recorded::kLanes> missing;  // with signatures
  if (worker.frame == nullptr) {
    for (const size_t i : batch) missing.emplace_back(i, 0);
  } else {
    const absl::Span<const int> structures =
        worker.frame->Match(absl::MakeConstSpan(lanes, batch.size()));
    for (size_t at = 0; at < batch.size(); ++at) {
      const int lane = static_cast<int>(at);
      if (structures[at] < 0) {
        missing.emplace_back(batch[at], worker.frame->Signature(lane));
      } else {
        visit(batch[at],
              space.table->legal(structures[at]) ? &worker.frame->ProgramOf(lane) : nullptr);
      }
    }
  }
  for (const auto& [i, signature] : missing) {
    const Point& point = *points[i];
    auto replayed = context_->spaces[point.space]->Replay(point.decisions);
    visit(i, replayed.ok() ? &*replayed : nullptr);
    ++worker.counts.replayed;
    if (worker.frame == nullptr || !Pays(space, worker, point, signature)) continue;
    ++worker.counts.recorded;
    worker.met.push_back(
        {point.decisions, space.replay->Record(point.decisions),
         replayed.ok() ? std::make_unique<const ir::Program>(*std::move(replayed)) : nullptr});
  }
}

void ProgramSource::Refresh(const Space& space, Worker& worker) {
  worker.known = space.table->structures();
  worker.signatures.clear();
  std::vector<std::vector<int64_t>> still;
  for (size_t begin = 0; begin < worker.replayed.size(); begin += recorded::kLanes) {
    const size_t count = std::min<size_t>(recorded::kLanes, worker.replayed.size() - begin);
    absl::Span<const int64_t> lanes[recorded::kLanes];
    for (size_t lane = 0; lane < count; ++lane) lanes[lane] = worker.replayed[begin + lane];
    const absl::Span<const int> structures = worker.frame->Match(absl::MakeConstSpan(lanes, count));
    for (size_t lane = 0; lane < count; ++lane) {
      if (structures[lane] >= 0) continue;
      ++worker.signatures[worker.frame->Signature(static_cast<int>(lane))];
      still.push_back(std::move(worker.replayed[begin + lane]));
    }
  }
  worker.replayed = std::move(still);
}

bool ProgramSource::Pays(const Space& space, Worker& worker, const Point& point,
                         uint64_t signature) {
  int& times = worker.signatures[signature];
  ++times;
  // A structure that was met once may never come again, and where there are many a recording serves
  // few vectors: earlier ones must have paid for this one.
  const int64_t saved = space.counts.points - space.counts.replayed;
  const int64_t recordings = space.counts.recorded + worker.counts.recorded;
  if (times > kReplaysBefore && (recordings - kOnCredit) * kReplaysPerRecording <= saved) {
    times = 0;
    return true;
  }
  if (worker.replayed.size() == kRemembered) {
    worker.replayed.erase(worker.replayed.begin(), worker.replayed.begin() + kRemembered / 2);
  }
  worker.replayed.push_back(point.decisions);
  return false;
}

void ProgramSource::Settle() {
  for (size_t s = 0; s < spaces_.size(); ++s) {
    Space& space = spaces_[s];
    Counts round;
    std::vector<Met> met;
    for (Worker& worker : space.workers) {
      round.points += worker.counts.points;
      round.replayed += worker.counts.replayed;
      round.recorded += worker.counts.recorded;
      worker.counts = {};
      std::move(worker.met.begin(), worker.met.end(), std::back_inserter(met));
      worker.met.clear();
    }
    space.counts.points += round.points;
    space.counts.replayed += round.replayed;
    space.counts.recorded += round.recorded;
    if (round.points == 0 || !context_->feature_programs) continue;
    if (space.replay == nullptr) {
      auto replay = recorded::RecordedReplay::Create(context_->spaces[s]->text());
      if (!replay.ok()) continue;
      space.replay = *std::move(replay);
    }
    if (space.table == nullptr ||
        space.table->structures() + static_cast<int>(met.size()) > kStructures) {
      for (Worker& worker : space.workers) worker = {};
      space.table = std::make_unique<recorded::ReplayTable>();
      for (Worker& worker : space.workers)
        worker.frame = std::make_unique<recorded::ReplayFrame>(space.table.get());
    }
    recorded::ReplayFrame known(space.table.get());
    for (Met& each : met) {  // a structure may have been met twice
      if (known.Match({each.decisions})[0] < 0)
        space.table->Add(each.recording, std::move(each.program)).IgnoreError();
    }
  }
}

ProgramSource::Counts ProgramSource::counts() const {
  Counts sum;
  for (const Space& space : spaces_) {
    sum.points += space.counts.points;
    sum.replayed += space.counts.replayed;
    sum.recorded += space.counts.recorded;
  }
  return sum;
}

}  // namespace hone::search
