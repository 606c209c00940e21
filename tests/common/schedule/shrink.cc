#include "tests/common/schedule/shrink.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hone::schedule {
namespace {

// Smaller values to try for a number, the boldest first. Each is smaller than `number`, so
// shrinking ends.
std::vector<int64_t> SmallerThan(int64_t number, int64_t least) {
  std::vector<int64_t> smaller;
  for (int64_t next : {least, number / 2, number - 1}) {
    if (next >= least && next < number && (smaller.empty() || smaller.back() != next))
      smaller.push_back(next);
  }
  return smaller;
}

// The position of a step's loop if an earlier step on the same block is dropped.
int PositionWithout(const Step& dropped, int position) {
  const int first = dropped.loops.empty() ? 0 : dropped.loops[0];
  const auto parts = static_cast<int>(dropped.numbers.size());
  if (dropped.primitive == "split") {
    return position < first ? position : std::max(first, position - parts + 1);
  }
  if (dropped.primitive == "fuse") {
    return position <= first ? position : position + static_cast<int>(dropped.loops.size()) - 1;
  }
  if (dropped.primitive == "add_unit_loop") return position <= first ? position : position - 1;
  if (dropped.primitive == "reorder") {
    std::vector<int> places = dropped.loops;
    std::sort(places.begin(), places.end());
    const auto at = std::find(places.begin(), places.end(), position);
    if (at != places.end()) return dropped.loops[at - places.begin()];
  }
  return position;
}

// Each method tries one kind of change and returns whether one was kept.
class Shrinker {
 public:
  Shrinker(RandomTrace failing, absl::FunctionRef<bool(const RandomTrace&)> fails, int max_tries)
      : best_(std::move(failing)), fails_(fails), tries_left_(max_tries) {}

  RandomTrace Run() {
    bool changed = true;
    while (changed && tries_left_ > 0) {
      changed = DropSteps();
      changed |= ShrinkExtents();
      changed |= SimplifySteps();
    }
    return std::move(best_);
  }

 private:
  bool DropSteps() {
    bool changed = false;
    for (size_t chunk = std::max<size_t>(1, best_.steps.size() / 2); chunk > 0; chunk /= 2) {
      for (size_t end = best_.steps.size(); end > 0; end = std::min(end - 1, best_.steps.size())) {
        const size_t begin = end > chunk ? end - chunk : 0;
        std::vector<Step> fewer = best_.steps;
        fewer.erase(fewer.begin() + begin, fewer.begin() + end);
        if (Keep(fewer, best_.drawn)) {
          changed = true;
        } else if (chunk == 1) {
          changed |= Keep(Without(begin), best_.drawn);
        }
      }
    }
    return changed;
  }

  // The steps without one of them; later steps still refer to the same loops.
  std::vector<Step> Without(size_t dropped) const {
    std::vector<Step> steps = best_.steps;
    const Step gone = steps[dropped];
    steps.erase(steps.begin() + dropped);
    for (size_t s = dropped; s < steps.size(); ++s) {
      if ((steps[s].target.empty() ? steps[s].block : steps[s].target) != gone.block) continue;
      for (int& position : steps[s].loops) position = PositionWithout(gone, position);
    }
    return steps;
  }

  bool ShrinkExtents() {
    bool changed = false;
    for (int i = 0; best_.drawn.has_value() && i < RandomWorkload::kExtents; ++i) {
      for (bool again = true; again;) {
        again = false;
        for (int64_t extent : SmallerThan(best_.drawn->extents[i], 1)) {
          RandomWorkload smaller = *best_.drawn;
          smaller.extents[i] = extent;
          if ((again = Keep(best_.steps, smaller))) break;
        }
        changed |= again;
      }
    }
    return changed;
  }

  bool SimplifySteps() {
    bool changed = false;
    for (size_t s = 0; s < best_.steps.size(); ++s) {
      for (bool again = true; again && s < best_.steps.size();) {
        again = false;
        for (Step& simpler : SimplerThan(best_.steps[s], *best_.workload)) {
          std::vector<Step> steps = best_.steps;
          steps[s] = std::move(simpler);
          if ((again = Keep(steps, best_.drawn))) break;
        }
        changed |= again;
      }
    }
    return changed;
  }

  static std::vector<Step> SimplerThan(const Step& step, const ir::Workload& workload) {
    std::vector<Step> simpler;
    // A stage's own block exists without a step that creates it.
    std::vector<std::string> stages;
    for (const ir::Stage& stage : workload.stages) {
      stages.push_back(workload.tensors[stage.tensors[0]].name);
    }
    if (std::find(stages.begin(), stages.end(), step.block) == stages.end()) {
      for (const std::string& stage : stages) simpler.emplace_back(step).block = stage;
    }
    if (!step.sampling.empty()) {
      Step& literal = simpler.emplace_back(step);
      literal.sampling.clear();
      // The first factor of a split is inferred from the others.
      if (step.primitive == "split") literal.numbers[0] = 0;
    }
    const bool list = step.primitive == "fuse" || step.primitive == "reorder";
    for (size_t l = 0; l < step.loops.size(); ++l) {
      if (list && step.loops.size() > 1) {
        Step& shorter = simpler.emplace_back(step);
        shorter.loops.erase(shorter.loops.begin() + l);
      }
    }
    for (size_t n = 0; n < step.numbers.size() && step.sampling.empty(); ++n) {
      // A first factor of 0 means that it is inferred.
      const int64_t least = step.primitive == "split" ? (n == 0 ? 0 : 1) : 0;
      for (int64_t number : SmallerThan(step.numbers[n], least)) {
        simpler.emplace_back(step).numbers[n] = number;
      }
    }
    return simpler;
  }

  // Takes the steps again and keeps the result if it also fails.
  bool Keep(const std::vector<Step>& steps, const std::optional<RandomWorkload>& drawn) {
    if (tries_left_-- <= 0) return false;
    RandomTrace candidate = TakeSteps(drawn.has_value() ? drawn->Parsed() : best_.workload, steps);
    candidate.drawn = drawn;
    candidate.seed = best_.seed;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  RandomTrace best_;
  absl::FunctionRef<bool(const RandomTrace&)> fails_;
  int tries_left_;
};

}  // namespace

RandomTrace Shrink(RandomTrace failing, absl::FunctionRef<bool(const RandomTrace&)> fails,
                   int max_tries) {
  return Shrinker(std::move(failing), fails, max_tries).Run();
}

}  // namespace hone::schedule
