#include "server/tuner/space/part_spaces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/replay.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/row_group.h"

namespace hone::space {
namespace {

using schedule::Operand;

// A part has at most this many reductions of rows. Softmax has two.
constexpr int kMostRowReductions = 6;
// Parts of one component (StageComponents) whose alternatives are combined, and parts of a workload
// that is scheduled as a whole. Those of independent components are not combined.
constexpr size_t kMostConnected = 4, kMostTogether = 8;
// Design spaces of a workload of many parts.
constexpr size_t kSpaces = 4;
// Candidates that are estimated for all different parts together, and for each of them at least.
constexpr int kEstimates = 1024, kLeastEstimates = 32;
// Spaces of a part whose best schedules are improved.
constexpr size_t kImproved = 4;
constexpr int kTries = 4;  // to draw a schedule of a part that replays

enum class StageKind { kElementwise, kRows, kHeavy };

StageKind KindOf(const ir::Program& program, ir::NodeId id) {
  const ir::Block& block = program.BlockOf(id);
  if (block.reducer == ir::Reducer::kNone) return StageKind::kElementwise;
  if (AnalyzeContraction(program, id).has_value()) return StageKind::kHeavy;
  return ReducesRows(program, block) ? StageKind::kRows : StageKind::kHeavy;
}

// The tensors that a stage reads, in the order of its expressions.
std::vector<ir::BufferId> ReadsOf(const ir::Workload& workload, const ir::Stage& stage) {
  std::vector<ir::BufferId> reads;
  for (const ir::ExprId value : stage.values) {
    workload.pool.Visit(value, [&](const ir::Expr& expr) {
      if (expr.op == ir::Op::kLoad) reads.push_back(expr.buffer);
    });
  }
  return reads;
}

// The best schedule that was found in a design space of a part.
struct Drafted {
  std::shared_ptr<const DesignSpace> space;
  std::vector<int64_t> decisions;
  double score = 0;
};

// Drafts the schedules of a part.
class PartDrafter {
 public:
  PartDrafter(const Generation& generation, int estimates)
      : generation_(generation), estimates_(estimates) {}

  // Returns the best schedule of each space, best first.
  absl::StatusOr<std::vector<Drafted>> Draft(std::vector<std::unique_ptr<DesignSpace>> spaces) {
    std::vector<Drafted> drafts;
    const int draws = std::max<int>(1, estimates_ / 2 / static_cast<int>(spaces.size()));
    for (std::unique_ptr<DesignSpace>& space : spaces) {
      Drafted best{.space = std::move(space)};
      for (int draw = 0, tries = 0; draw < draws && tries < draws + kTries; ++tries) {
        if (generation_.check != nullptr) HONE_RETURN_IF_ERROR(generation_.check());
        draw += Try(best, best.space->Sample(rng_)) ? 1 : 0;
        if (generation_.score == nullptr && draw > 0) break;
        if (best.space->decision_count() == 0) break;
      }
      if (best.score > 0) drafts.push_back(std::move(best));
    }
    Sort(drafts);
    if (generation_.score != nullptr) HONE_RETURN_IF_ERROR(Improve(drafts));
    return drafts;
  }

 private:
  static void Sort(std::vector<Drafted>& drafts) {
    absl::c_stable_sort(drafts,
                        [](const Drafted& a, const Drafted& b) { return a.score > b.score; });
  }

  // Estimates a schedule and keeps it if it is better. Returns whether it replays.
  bool Try(Drafted& best, const absl::StatusOr<std::vector<int64_t>>& decisions) const {
    if (!decisions.ok()) return false;
    const absl::StatusOr<ir::Program> program = best.space->Replay(*decisions);
    if (!program.ok()) return false;
    const double score = generation_.score == nullptr ? 1 : generation_.score(*program);
    if (score > best.score) {
      best.score = score;
      best.decisions = *decisions;
    }
    return true;
  }

  // Climbs from the best schedules: each step moves to a neighbour if that is better.
  absl::Status Improve(std::vector<Drafted>& drafts) {
    const size_t climbers = std::min(kImproved, drafts.size());
    for (int step = 0; step < estimates_ / 2 && climbers > 0; ++step) {
      if (generation_.check != nullptr) HONE_RETURN_IF_ERROR(generation_.check());
      Drafted& climber = drafts[step % climbers];
      Try(climber, climber.space->Mutate(climber.decisions, rng_));
    }
    Sort(drafts);
    return absl::OkStatus();
  }

  const Generation& generation_;
  const int estimates_;
  Rng rng_{/*key=*/0x7061727473};
};

// A part as it occurs in the workload. Parts that are equal up to names share their drafts.
struct Occurrence {
  ir::Workload workload;
  std::shared_ptr<const ir::Workload> drafted;  // that of the drafts
  const std::vector<Drafted>* drafts = nullptr;
  std::shared_ptr<const DesignSpace> untiled;
};

// Appends the traces of parts to one trace of the workload.
class TraceJoiner {
 public:
  explicit TraceJoiner(std::shared_ptr<const ir::Workload> workload)
      : partial_(schedule::StartReplay(std::move(workload))) {}

  // Appends the trace of a part with the given decisions. Returns false if it does not replay here;
  // the joiner must then be discarded.
  bool Append(const Occurrence& part, const std::shared_ptr<const DesignSpace>& space,
              const std::vector<int64_t>& decisions) {
    const schedule::Trace& added = space->trace();
    for (schedule::Instruction instruction : added.instructions) {
      Rename(part, instruction);
      for (auto* operands : {&instruction.operands, &instruction.results}) {
        for (Operand& operand : *operands) Shift(operand);
      }
      if (instruction.decision_begin >= 0) instruction.decision_begin += trace_.decisions;
      trace_.instructions.push_back(std::move(instruction));
    }
    trace_.blocks += added.blocks;
    trace_.loops += added.loops;
    trace_.ints += added.ints;
    trace_.decisions += added.decisions;
    decisions_.insert(decisions_.end(), decisions.begin(), decisions.end());
    parts_.push_back(space);
    schedule::GivenDecider decider(decisions_);
    return schedule::ContinueReplay(trace_, decider, partial_).ok();
  }

  absl::StatusOr<std::unique_ptr<DesignSpace>> Build(std::string name) && {
    return DesignSpace::OfParts(std::move(name), partial_.workload, std::move(trace_),
                                std::move(parts_), std::move(decisions_));
  }

 private:
  void Shift(Operand& operand) const {
    if (operand.kind == Operand::Kind::kBlock) operand.reg += trace_.blocks;
    if (operand.kind == Operand::Kind::kLoop) operand.reg += trace_.loops;
    if (operand.kind == Operand::Kind::kInt) operand.reg += trace_.ints;
  }

  // Replaces the names of the drafted part's tensors by those of the part.
  static void Rename(const Occurrence& part, schedule::Instruction& instruction) {
    const absl::string_view primitive = instruction.primitive->name;
    if (primitive != "block" && primitive != "cache_read") return;
    for (Operand& operand : instruction.operands) {
      if (operand.kind != Operand::Kind::kString) continue;
      const std::vector<ir::Tensor>& tensors = part.drafted->tensors;
      const auto named =
          absl::c_find_if(tensors, [&](const ir::Tensor& t) { return t.name == operand.text; });
      if (named != tensors.end())
        operand.text = part.workload.tensors[named - tensors.begin()].name;
      break;  // a memory scope follows the buffer
    }
  }

  schedule::Trace trace_;
  std::vector<int64_t> decisions_;
  schedule::PartialReplay partial_;
  std::vector<std::shared_ptr<const DesignSpace>> parts_;
};

// Joins the schedules of all parts. Remembers which of them replay in the workload.
class Joiner {
 public:
  Joiner(std::shared_ptr<const ir::Workload> workload, const std::vector<Occurrence>& parts,
         const Generation& generation)
      : workload_(std::move(workload)), parts_(parts), generation_(generation) {}

  // Takes the schedule of this rank of each part, or else the best one that replays.
  absl::StatusOr<std::unique_ptr<DesignSpace>> Join(size_t rank) {
    TraceJoiner joined(workload_);
    for (size_t p = 0; p < parts_.size();) {
      if (generation_.check != nullptr) HONE_RETURN_IF_ERROR(generation_.check());
      const Occurrence& part = parts_[p];
      const std::optional<size_t> draft = Pick(part, rank);
      const Key key{&part, draft.value_or(kUntiled)};
      // A schedule that has replayed for an equal part does so here, too, with few exceptions.
      std::optional<TraceJoiner> before;
      if (!replays_.contains({part.drafted.get(), key.second})) before = joined;
      if (draft.has_value()
              ? joined.Append(part, (*part.drafts)[*draft].space, (*part.drafts)[*draft].decisions)
              : joined.Append(part, part.untiled, {})) {
        replays_.insert({part.drafted.get(), key.second});
        ++p;
        continue;
      }
      if (!draft.has_value()) {
        return absl::InternalError(absl::StrCat(
            "the untiled schedule of ", part.workload.tensors[part.workload.Outputs()[0]].name,
            " does not replay in its workload"));
      }
      if (generation_.dropped != nullptr) ++*generation_.dropped;
      fails_.insert(key);
      if (before.has_value()) {
        joined = *std::move(before);
      } else {
        joined = TraceJoiner(workload_);
        p = 0;
      }
    }
    return std::move(joined).Build(absl::StrCat("parts", rank + 1));
  }

 private:
  using Key = std::pair<const Occurrence*, size_t>;
  static constexpr size_t kUntiled = SIZE_MAX;

  // Returns the draft of a part that is tried next; nullopt: the untiled schedule.
  std::optional<size_t> Pick(const Occurrence& part, size_t rank) const {
    const size_t count = part.drafts->size();
    if (rank < count && !fails_.contains({&part, rank})) return rank;
    for (size_t d = 0; d < count; ++d) {
      if (!fails_.contains({&part, d})) return d;
    }
    return std::nullopt;
  }

  const std::shared_ptr<const ir::Workload> workload_;
  const std::vector<Occurrence>& parts_;
  const Generation& generation_;
  std::set<std::pair<const ir::Workload*, size_t>> replays_;
  std::set<Key> fails_;
};

}  // namespace

std::vector<int> StageComponents(const ir::Workload& workload) {
  // Every stage starts with a new label, and merges it with the labels of the stages that it reads.
  std::vector<int> labels;
  std::map<ir::BufferId, size_t> writer;
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const ir::Stage& stage = workload.stages[s];
    const int own = static_cast<int>(s);
    labels.push_back(own);
    for (const ir::ExprId value : stage.values) {
      workload.pool.VisitLoads(value, [&](const ir::Expr& load) {
        const auto read = writer.find(load.buffer);
        if (read == writer.end()) return;
        std::replace(labels.begin(), labels.end(), int{labels[read->second]}, own);
      });
    }
    for (const ir::BufferId tensor : stage.tensors) writer[tensor] = s;
  }
  std::map<int, int> numbers;
  for (int& label : labels) {
    label = numbers.emplace(label, static_cast<int>(numbers.size())).first->second;
  }
  return labels;
}

std::vector<StageRange> PartsOf(const ir::Workload& workload) {
  const auto program = ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  const std::vector<ir::NodeId> blocks = program.AllBlocks();
  std::vector<StageRange> parts;
  std::set<ir::BufferId> own;  // the tensors of the current part
  bool heavy = false;          // it has a contraction or a window
  int rows = 0;                // its reductions of rows
  for (int s = 0; s < static_cast<int>(workload.stages.size()); ++s) {
    const ir::Stage& stage = workload.stages[s];
    const StageKind kind = KindOf(program, blocks[s]);
    const std::vector<ir::BufferId> reads = ReadsOf(workload, stage);
    const bool follows =
        absl::c_any_of(reads, [&](ir::BufferId tensor) { return own.contains(tensor); });
    bool joins = !parts.empty();
    switch (kind) {
      case StageKind::kElementwise:
        joins &= follows || (!heavy && rows == 0);
        break;
      case StageKind::kRows:
        joins &= !heavy && rows < kMostRowReductions;
        break;
      case StageKind::kHeavy:
        joins &= !heavy && rows == 0;
        break;
    }
    if (!joins) {
      parts.push_back({s, s});
      own.clear();
      heavy = false;
      rows = 0;
    }
    parts.back().end = s + 1;
    heavy |= kind == StageKind::kHeavy;
    rows += kind == StageKind::kRows ? 1 : 0;
    own.insert(stage.tensors.begin(), stage.tensors.end());
  }
  return parts;
}

bool HasManyParts(const ir::Workload& workload, absl::Span<const StageRange> parts) {
  if (parts.size() <= kMostConnected) return false;
  if (parts.size() > kMostTogether) return true;
  const std::vector<int> components = StageComponents(workload);
  std::map<int, size_t> connected;
  for (const StageRange& part : parts) ++connected[components[part.end - 1]];
  return absl::c_any_of(connected, [](const auto& count) { return count.second > kMostConnected; });
}

absl::StatusOr<ir::Workload> WorkloadOf(const ir::Workload& whole, StageRange stages) {
  ir::Workload part = whole;
  part.stages.assign(whole.stages.begin() + stages.begin, whole.stages.begin() + stages.end);
  std::vector<ir::BufferId> inputs, computed;
  for (const ir::Stage& stage : part.stages) {
    for (const ir::BufferId tensor : ReadsOf(whole, stage)) {
      const bool known = absl::c_count(inputs, tensor) > 0 || absl::c_count(computed, tensor) > 0;
      if (!known) inputs.push_back(tensor);
    }
    computed.insert(computed.end(), stage.tensors.begin(), stage.tensors.end());
  }
  std::set<ir::BufferId> read_later;
  for (size_t s = stages.end; s < whole.stages.size(); ++s) {
    for (const ir::BufferId tensor : ReadsOf(whole, whole.stages[s])) read_later.insert(tensor);
  }
  // Inputs are declared in the order in which they are read, so that equal parts get equal texts.
  std::vector<ir::Tensor> tensors;
  std::vector<ir::BufferId> renamed(whole.tensors.size(), -1);
  for (const ir::BufferId tensor : inputs) {
    renamed[tensor] = static_cast<ir::BufferId>(tensors.size());
    tensors.push_back(whole.tensors[tensor]);
    tensors.back().input = true;
    tensors.back().output = false;
  }
  for (const ir::BufferId tensor : computed) {
    renamed[tensor] = static_cast<ir::BufferId>(tensors.size());
    tensors.push_back(whole.tensors[tensor]);
    tensors.back().output |= read_later.contains(tensor);
  }
  part.tensors = std::move(tensors);
  for (ir::Stage& stage : part.stages) {
    for (ir::BufferId& tensor : stage.tensors) tensor = renamed[tensor];
    for (ir::ExprId& value : stage.values) {
      value = part.pool.Rewrite(
          value,
          [&](const ir::Expr& load) {
            ir::IndexList indices = part.pool.IndicesOf(load);
            const ir::BufferId to = renamed[load.buffer];
            if (load.gathered < 0) return part.pool.Load(to, load.dtype, std::move(indices));
            return part.pool.Gather(to, load.dtype, std::move(indices), load.gathered, load.a);
          },
          [](const ir::Index& index) { return index; });
    }
  }
  // Parsing leaves out the expressions of the other stages.
  return ir::ParseWorkload(part.ToText());
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> SpacesOfParts(
    std::shared_ptr<const ir::Workload> workload, absl::Span<const StageRange> parts,
    const target::Target& target, const Generation& generation) {
  std::vector<Occurrence> occurrences;
  std::map<Digest, std::shared_ptr<const ir::Workload>> different;
  for (const StageRange& range : parts) {
    HONE_ASSIGN_OR_RETURN(ir::Workload part, WorkloadOf(*workload, range));
    auto& drafted = different[part.StructuralDigest()];
    if (drafted == nullptr) drafted = std::make_shared<const ir::Workload>(part);
    occurrences.push_back({.workload = std::move(part), .drafted = drafted});
  }
  const int estimates = std::max(kLeastEstimates, kEstimates / static_cast<int>(different.size()));
  std::map<const ir::Workload*, std::vector<Drafted>> drafts;
  std::map<const ir::Workload*, std::shared_ptr<const DesignSpace>> untiled;
  Generation as_written = generation;
  as_written.rewrites = false;  // a rewrite must come before everything else
  for (const auto& [digest, part] : different) {
    HONE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<DesignSpace>> spaces,
                          GenerateDesignSpaces(part, target, as_written));
    HONE_ASSIGN_OR_RETURN(drafts[part.get()],
                          PartDrafter(generation, estimates).Draft(std::move(spaces)));
    HONE_ASSIGN_OR_RETURN(untiled[part.get()], DefaultCandidate(part, target));
  }
  size_t ranks = 1;
  for (Occurrence& part : occurrences) {
    part.drafts = &drafts.at(part.drafted.get());
    part.untiled = untiled.at(part.drafted.get());
    ranks = std::max(ranks, part.drafts->size());
  }
  Joiner joiner(workload, occurrences, generation);
  std::vector<std::unique_ptr<DesignSpace>> spaces;
  for (size_t rank = 0; rank < std::min(ranks, kSpaces); ++rank) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<DesignSpace> space, joiner.Join(rank));
    const bool known =
        absl::c_any_of(spaces, [&](const auto& s) { return s->digest() == space->digest(); });
    if (!known) spaces.push_back(std::move(space));
  }
  return spaces;
}

}  // namespace hone::space
