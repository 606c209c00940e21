#include "client/cli/dataset/ansor_replay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/dataset/ansor_lowering.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"

namespace hone::cli {
namespace {

using ir::NodeId;
using nlohmann::json;
using schedule::Operand;

constexpr size_t kMostSteps = 1000;

struct ReplayedLoop {
  Operand reg;
  std::vector<AxisPart> parts;  // several after a fuse
};

// A stage of Ansor's state.
struct ReplayedStage {
  std::string tensor;      // of the workload; "" if it has none
  bool has_block = false;  // false: an input, or a stage that the workload does not have
  bool is_extra = false;   // Hone computes it where it is read, so that it must be inlined
  bool is_shared = false;  // a copy in memory that the threads of a GPU's block share
  bool waits = false;      // for the step that moves it to another stage
  int target = -1;         // the stage that it was moved to
  Operand block;
  std::vector<ReplayedLoop> loops;
  std::vector<size_t> waiting;  // steps
};

// A step with its stages, which Ansor numbers anew whenever a step adds one.
struct ReplayedStep {
  const json* list;
  std::string name;
  int stage;
  int other = -1;            // CA: the target; CHR, CHW: the new stage
  std::vector<int> readers;  // CHR
};

absl::Status Inexact(absl::string_view step, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("step ", step, ": ", why));
}
absl::Status Malformed(const ReplayedStep& step, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the step ", step.list->dump(), " ", why));
}

absl::string_view FirstLine(absl::string_view text) { return text.substr(0, text.find('\n')); }

class AnsorReplay {
 public:
  AnsorReplay(const ForeignWorkload& foreign, ir::Workload workload)
      : foreign_(foreign),
        partial_(schedule::StartReplay(std::make_shared<const ir::Workload>(std::move(workload)))) {
  }

  absl::StatusOr<std::string> Run(const json& steps, int64_t layout) {
    HONE_RETURN_IF_ERROR(Number(steps));
    for (ReplayedStage& stage : stages_) {
      if (!stage.has_block || stage.tensor.empty()) continue;
      HONE_ASSIGN_OR_RETURN(const std::vector<Operand> block,
                            Apply("list", "block", {schedule::Text(stage.tensor)}));
      stage.block = block[0];
    }
    for (size_t i = 0; i < steps_.size(); ++i) HONE_RETURN_IF_ERROR(Do(i, /*waited=*/false));
    for (const ReplayedStage& stage : stages_) {
      if (stage.is_extra) return Inexact("CI", "a stage that Hone does not have is not inlined");
      if (stage.waits) return Inexact("CA", "two stages are moved to each other");
    }
    HONE_RETURN_IF_ERROR(SetKinds());
    HONE_RETURN_IF_ERROR(UnrollUpToLimits());
    if (layout == kLayoutOfLoops) HONE_RETURN_IF_ERROR(StoreInOrderOfLoops());
    return schedule::TraceFileText(*partial_.workload, builder_.trace());
  }

 private:
  // Finds out which stage each step concerns, and which stages are moved.
  absl::Status Number(const json& steps) {
    if (steps.size() > kMostSteps) return Inexact("list", "too long");
    const std::vector<ir::BufferId> inputs = partial_.workload->Inputs();
    std::vector<int> order;
    for (const std::string& tensor : foreign_.stages) {
      const bool is_input = absl::c_any_of(
          inputs, [&](ir::BufferId id) { return partial_.workload->tensors[id].name == tensor; });
      // An input that is named again is passed on.
      const bool is_again = absl::c_any_of(
          stages_, [&](const ReplayedStage& stage) { return stage.tensor == tensor; });
      order.push_back(static_cast<int>(stages_.size()));
      stages_.push_back({.tensor = tensor,
                         .has_block = !tensor.empty() && !is_input,
                         .is_extra = tensor.empty() || is_again});
    }
    for (const json& list : steps) {
      ReplayedStep step{.list = &list, .name = list[0]};
      const auto stage_at = [&](const json& index) {
        const auto i = index.get<uint64_t>();
        return i < order.size() ? order[i] : -1;
      };
      step.stage = stage_at(list[1]);
      if (step.stage < 0) return Malformed(step, "names a stage that does not exist");
      if (step.name == "CA") {
        step.other = stage_at(list[2]);
        if (step.other < 0) return Malformed(step, "names a stage that does not exist");
      }
      if (step.name == "RF") return Inexact("RF", "its new stage has another place in Hone");
      if (step.name == "CHR" || step.name == "CHW") {
        const auto at = list[1].get<int64_t>();
        for (size_t r = 0; step.name == "CHR" && r < list[3].size(); ++r) {
          const int reader = stage_at(list[3][r]);
          if (reader < 0) return Malformed(step, "names a stage that does not exist");
          step.readers.push_back(reader);
        }
        step.other = static_cast<int>(stages_.size());
        stages_.push_back({.has_block = true});
        order.insert(order.begin() + at + (step.name == "CHR" ? 1 : 0), step.other);
      }
      steps_.push_back(std::move(step));
    }
    // The last step that moves a stage counts; CR takes it back.
    moving_.assign(stages_.size(), steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const std::string& name = steps_[i].name;
      if (name == "CA") moving_[steps_[i].stage] = i;
      if (name == "CR" || name == "CI") moving_[steps_[i].stage] = steps_.size();
    }
    for (size_t s = 0; s < stages_.size(); ++s)
      stages_[s].waits = stages_[s].has_block && moving_[s] < steps_.size();
    return absl::OkStatus();
  }

  const ir::Program& program() const { return partial_.replayed.program; }
  NodeId Node(const Operand& reg) const {
    return reg.kind == Operand::Kind::kBlock ? partial_.blocks[reg.reg] : partial_.loops[reg.reg];
  }
  int64_t ExtentOf(const Operand& loop) const { return program().node(Node(loop)).extent.value; }

  // Applies a primitive.
  absl::StatusOr<std::vector<Operand>> Apply(absl::string_view step, absl::string_view primitive,
                                             std::vector<Operand> operands, int results = -1) {
    std::vector<Operand> made = builder_.Add(primitive, std::move(operands), {}, results);
    schedule::GivenDecider decider({});
    const absl::Status status = schedule::ContinueReplay(builder_.trace(), decider, partial_);
    if (!status.ok()) return Inexact(step, FirstLine(status.message()));
    return made;
  }

  // Finds the loops of a block before the first step that concerns them.
  absl::Status FindLoops(absl::string_view step, ReplayedStage& stage) {
    if (!stage.loops.empty()) return absl::OkStatus();
    const int count = static_cast<int>(program().BlockOf(Node(stage.block)).iters.size());
    HONE_ASSIGN_OR_RETURN(std::vector<Operand> loops,
                          Apply(step, "loops", {stage.block, schedule::Number(count)}, count));
    for (size_t axis = 0; axis < loops.size(); ++axis)
      stage.loops.push_back({loops[axis], {{axis, ExtentOf(loops[axis])}}});
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> LoopAt(const ReplayedStep& step, const ReplayedStage& stage,
                                const json& index) {
    const auto loop = index.get<uint64_t>();
    if (loop >= stage.loops.size())
      return Malformed(
          step, absl::StrCat("names a loop beyond the ", stage.loops.size(), " of its stage"));
    return loop;
  }

  // `waited`: the step was given before its stage was moved.
  absl::Status Do(size_t index, bool waited) {
    const ReplayedStep& step = steps_[index];
    ReplayedStage& stage = stages_[step.stage];
    const std::string& name = step.name;
    if (name == "CR") return absl::OkStatus();
    if (name == "CI") return Inline(step, stage);
    if (name == "CHR") return CacheRead(step, stage);
    if (!stage.has_block) return Inexact(name, "Hone has no block for this stage");
    if (name == "CHW") return CacheWrite(step, stage);
    if (name == "CA")
      return index == moving_[step.stage] ? Move(index, step, stage) : absl::OkStatus();
    if (stage.waits) {
      stage.waiting.push_back(index);
      return absl::OkStatus();
    }
    HONE_RETURN_IF_ERROR(FindLoops(name, stage));
    const json& arguments = *step.list;
    if (name == "RE") return ReorderLoops(step, stage);
    if (name == "FU") return FuseLoops(step, stage);
    HONE_ASSIGN_OR_RETURN(const size_t loop, LoopAt(step, stage, arguments[2]));
    if (name == "AN") {
      kinds_.push_back({&step, stage.loops[loop].reg});
      return absl::OkStatus();
    }
    if (name == "PR") return Limit(step, stage.loops[loop].reg);
    if (name == "SA") {
      const std::vector<AxisPart>& parts = stage.loops[loop].parts;
      if (stage.target >= 0 || parts.size() != 1)
        return Inexact("SA", "the loop is not an axis of the stage");
      return Apply("SA", "storage_align",
                   {stage.block, schedule::Number(static_cast<int64_t>(parts[0].axis)),
                    schedule::Number(arguments[3].get<int64_t>()),
                    schedule::Number(arguments[4].get<int64_t>())})
          .status();
    }
    if (name == "SP" && !waited && stage.target < 0 && arguments[3] != 0 &&
        arguments[3].get<int64_t>() != ExtentOf(stage.loops[loop].reg)) {
      return Inexact("SP", "the loop has another extent in Hone");
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, LengthsOf(index));
    const bool from_inside = name == "FSP" || arguments.back() != 0;
    return SplitLoop(step, stage, loop, lengths, from_inside);
  }

  // The factors of SP, FSP or FFSP, outermost first, without the one that follows from the others.
  absl::StatusOr<std::vector<int64_t>> LengthsOf(size_t index) {
    const ReplayedStep& step = steps_[index];
    const json& arguments = *step.list;
    const auto lengths_of = [&](const json& source) -> absl::StatusOr<std::vector<int64_t>> {
      const auto i = source.get<uint64_t>();
      if (i >= index || steps_[i].name != "SP") return Malformed(step, "follows no earlier split");
      return (*steps_[i].list)[4].get<std::vector<int64_t>>();
    };
    if (step.name == "SP") return arguments[4].get<std::vector<int64_t>>();
    if (step.name == "FSP") {
      HONE_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, lengths_of(arguments[3]));
      const auto parts = arguments[4].get<uint64_t>();
      if (parts == 0 || parts > lengths.size() + 1)
        return Malformed(step, "takes more factors than the split that it follows has");
      int64_t rest = 1;
      for (size_t i = parts - 1; i < lengths.size(); ++i) {
        if (lengths[i] < 1 || rest > ir::kMaxElements / lengths[i])
          return Malformed(step, "follows a split whose factors are out of range");
        rest *= lengths[i];
      }
      lengths.resize(parts - 1);
      lengths.push_back(rest);
      return lengths;
    }
    int64_t product = 1;  // FFSP
    for (const json& source : arguments[3]) {
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, lengths_of(source));
      const auto level = arguments[4].get<uint64_t>();
      if (level >= lengths.size() || lengths[level] < 1 ||
          product > ir::kMaxElements / lengths[level]) {
        return Malformed(step, "follows a split that does not have this factor");
      }
      product *= lengths[level];
    }
    return std::vector<int64_t>{product};
  }

  absl::Status SplitLoop(const ReplayedStep& step, ReplayedStage& stage, size_t loop,
                         const std::vector<int64_t>& lengths, bool from_inside) {
    if (stage.loops.size() + lengths.size() > kMostLoops)
      return Inexact(step.name, "too many loops");
    if (lengths.empty()) return absl::OkStatus();
    const ReplayedLoop old = stage.loops[loop];
    int64_t rest = ExtentOf(old.reg);
    std::vector<int64_t> extents(lengths.size() + 1, 1);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const size_t at = from_inside ? lengths.size() - 1 - i : i;
      const int64_t length = lengths[at];
      if (length < 1) return Malformed(step, "has a factor below 1");
      // TVM shrinks a factor to what is left of a part that is smaller.
      const int64_t extent = stage.target >= 0 ? std::min(length, rest) : length;
      // Both guard a moved part that does not divide.
      if (rest % extent != 0 && stage.target < 0)
        return Malformed(step, "has factors that do not divide the loop");
      extents[from_inside ? at + 1 : at] = extent;
      rest = ir::CeilDivInt(rest, extent);
    }
    extents[from_inside ? 0 : lengths.size()] = rest;
    std::vector<Operand> operands = {old.reg};
    for (const int64_t extent : extents) operands.push_back(schedule::Number(extent));
    HONE_ASSIGN_OR_RETURN(std::vector<Operand> made, Apply(step.name, "split", std::move(operands),
                                                           static_cast<int>(extents.size())));
    std::vector<ReplayedLoop> loops;
    for (size_t i = 0; i < made.size(); ++i) {
      loops.push_back({made[i], {}});
      // The parts of a fused loop that is split again do not matter to any later step.
      if (old.parts.size() == 1) loops[i].parts = {{old.parts[0].axis, extents[i]}};
    }
    stage.loops.erase(stage.loops.begin() + static_cast<int64_t>(loop));
    stage.loops.insert(stage.loops.begin() + static_cast<int64_t>(loop), loops.begin(),
                       loops.end());
    return absl::OkStatus();
  }

  absl::Status ReorderLoops(const ReplayedStep& step, ReplayedStage& stage) {
    const auto order = (*step.list)[2].get<std::vector<int64_t>>();
    std::vector<int64_t> sorted = order, all(stage.loops.size());
    absl::c_sort(sorted);
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all)
      return Malformed(step, absl::StrCat("is no order of the ", all.size(), " loops"));
    if (order == all) return absl::OkStatus();
    std::vector<ReplayedLoop> loops;
    std::vector<Operand> operands;
    for (const int64_t i : order) {
      loops.push_back(stage.loops[i]);
      operands.push_back(loops.back().reg);
    }
    stage.loops = std::move(loops);
    return Apply("RE", "reorder", std::move(operands)).status();
  }

  absl::Status FuseLoops(const ReplayedStep& step, ReplayedStage& stage) {
    const json& list = (*step.list)[2];
    if (list.empty()) return Malformed(step, "fuses nothing");
    HONE_ASSIGN_OR_RETURN(const size_t first, LoopAt(step, stage, list[0]));
    ReplayedLoop fused;
    std::vector<Operand> operands;
    for (size_t i = 0; i < list.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const size_t loop, LoopAt(step, stage, list[i]));
      if (loop != first + i) return Malformed(step, "fuses loops that are not neighbours");
      operands.push_back(stage.loops[loop].reg);
      const std::vector<AxisPart>& parts = stage.loops[loop].parts;
      fused.parts.insert(fused.parts.end(), parts.begin(), parts.end());
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<Operand> made,
                          Apply("FU", "fuse", std::move(operands)));
    fused.reg = made[0];
    const auto begin = stage.loops.begin() + static_cast<int64_t>(first);
    stage.loops.erase(begin, begin + static_cast<int64_t>(list.size()));
    stage.loops.insert(stage.loops.begin() + static_cast<int64_t>(first), std::move(fused));
    return absl::OkStatus();
  }

  absl::Status Inline(const ReplayedStep& step, ReplayedStage& stage) {
    if (std::exchange(stage.is_extra, false)) return absl::OkStatus();
    if (!stage.has_block) return Inexact("CI", "the stage is an input");
    stage.has_block = false;
    return Apply(step.name, "compute_inline", {stage.block}).status();
  }

  absl::Status Move(size_t index, const ReplayedStep& step, ReplayedStage& stage) {
    ReplayedStage& target = stages_[step.other];
    if (!target.has_block) return Inexact("CA", "Hone does not have the target's loops");
    if (target.waits) {
      target.waiting.push_back(index);
      return absl::OkStatus();
    }
    HONE_RETURN_IF_ERROR(FindLoops("CA", target));
    HONE_ASSIGN_OR_RETURN(const size_t loop, LoopAt(step, target, (*step.list)[3]));
    HONE_RETURN_IF_ERROR(Apply("CA", "compute_at", {stage.block, target.loops[loop].reg}).status());
    stage.loops.clear();
    HONE_RETURN_IF_ERROR(FindLoops("CA", stage));
    stage.waits = false;
    stage.target = step.other;
    for (const size_t waiting : std::exchange(stage.waiting, {}))
      HONE_RETURN_IF_ERROR(Do(waiting, /*waited=*/true));
    return absl::OkStatus();
  }

  // A copy that is read by one stage. Reading an input through a stage that only passes it on is
  // reading the input.
  absl::Status CacheRead(const ReplayedStep& step, const ReplayedStage& stage) {
    if (stage.tensor.empty() || step.readers.size() != 1 || !stages_[step.readers[0]].has_block)
      return Inexact("CHR", "Hone does not have the stage or its only reader");
    const ReplayedStage& reader = stages_[step.readers[0]];
    ReplayedStage& copy = stages_[step.other];
    HONE_ASSIGN_OR_RETURN(const std::vector<Operand> made,
                          Apply("CHR", "cache_read",
                                {reader.block, schedule::Text(stage.tensor),
                                 schedule::Text((*step.list)[2].get<std::string>())}));
    copy.block = made[0];
    copy.is_shared = (*step.list)[2] == "shared";
    return absl::OkStatus();
  }

  // The new stage computes, and the old one copies.
  absl::Status CacheWrite(const ReplayedStep& step, ReplayedStage& stage) {
    if (!stage.loops.empty()) return Inexact("CHW", "it comes after steps of its stage");
    HONE_ASSIGN_OR_RETURN(const std::vector<Operand> made,
                          Apply("CHW", "cache_write",
                                {stage.block, schedule::Text((*step.list)[2].get<std::string>())}));
    ReplayedStage& computing = stages_[step.other];
    computing.block = std::exchange(stage.block, made[0]);
    return absl::OkStatus();
  }

  absl::Status Limit(const ReplayedStep& step, const Operand& loop) {
    const auto pragma = (*step.list)[3].get<std::string>();
    absl::string_view text = pragma;
    int64_t limit = 0;
    if (!absl::ConsumePrefix(&text, "auto_unroll_max_step$") || !absl::SimpleAtoi(text, &limit) ||
        limit > kMostUnrolledSteps) {
      return Inexact("PR", "another pragma than auto_unroll_max_step, or a large number");
    }
    limits_.push_back({loop, limit});
    return absl::OkStatus();
  }

  absl::Status SetKinds() {
    constexpr absl::string_view kAxes[] = {"vthread",     "blockIdx.x", "threadIdx.x", "blockIdx.y",
                                           "threadIdx.y", "blockIdx.z", "threadIdx.z"};
    for (const auto& [step, loop] : kinds_) {
      const auto kind = (*step->list)[3].get<int64_t>();
      if (!program().IsLoop(Node(loop))) return Inexact("AN", "the loop was changed later");
      for (const ReplayedStage& stage : stages_) {
        if (stage.is_shared && kind >= 4 && &stages_[step->stage] != &stage &&
            program().IsUnder(Node(stage.block), Node(loop))) {
          return Inexact("CHR", "TVM's threads fetch a part of the copy each, inside their loop");
        }
      }
      const bool is_one = ExtentOf(loop) == 1;  // TVM makes no loop
      absl::Status status;
      if (kind >= 4 && kind < 4 + static_cast<int64_t>(std::size(kAxes))) {
        status = Apply("AN", "bind", {loop, schedule::Text(std::string(kAxes[kind - 4]))}).status();
      } else if (kind >= 1 && kind <= 3) {
        constexpr absl::string_view kKinds[] = {"unroll", "vectorize", "parallel"};
        if (!is_one) status = Apply("AN", kKinds[kind - 1], {loop}).status();
      } else if (kind != 0) {
        status = Inexact("AN", "an instruction of TVM");
      }
      HONE_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

  absl::Status UnrollUpToLimits() {
    std::map<NodeId, int64_t> limits;  // 0 ends an outer or an earlier one
    for (const auto& [loop, limit] : limits_) limits[Node(loop)] = limit;
    if (absl::c_none_of(limits, [](const auto& limit) { return limit.second > 0; }))
      return absl::OkStatus();
    for (const ir::Node& node : program().nodes) {
      if (node.axis == ir::ThreadAxis::kVThread && node.extent.value > 1)
        return Inexact("PR", "TVM makes copies of what virtual threads do");
    }
    std::vector<Operand> loop_of(program().nodes.size());
    for (size_t reg = 0; reg < partial_.loops.size(); ++reg) {
      loop_of[partial_.loops[reg]] = {.kind = Operand::Kind::kLoop,
                                      .reg = static_cast<int32_t>(reg)};
    }
    for (const NodeId node : LoopsThatTvmUnrolls(program(), limits))
      HONE_RETURN_IF_ERROR(Apply("PR", "unroll", {loop_of[node]}).status());
    return absl::OkStatus();
  }

  // Packs the constant whose layout is free in the order in which the loops of its reader visit it.
  absl::Status StoreInOrderOfLoops() {
    if (!foreign_.free_layout.has_value())
      return Inexact("list", "it is not known which constants were stored in another layout");
    if (foreign_.free_layout->empty()) return absl::OkStatus();
    const ReplayedStage* reader = nullptr;
    ir::BufferId constant = -1;
    for (const ReplayedStage& stage : stages_) {
      for (ir::BufferId id = 0; stage.has_block && id < std::ssize(program().buffers); ++id) {
        if (program().buffers[id].name == *foreign_.free_layout &&
            program().Reads(program().BlockOf(Node(stage.block)), id)) {
          reader = &stage;
          constant = id;
        }
      }
    }
    if (reader == nullptr) return Inexact("list", "nothing reads the constant");
    std::vector<AxisPart> parts;  // of the loops around the reader, outermost first
    for (const NodeId node : program().LoopsAbove(Node(reader->block))) {
      const auto add = [&](const ReplayedStage& stage) {
        for (const ReplayedLoop& loop : stage.loops) {
          if (Node(loop.reg) == node)
            parts.insert(parts.end(), loop.parts.begin(), loop.parts.end());
        }
      };
      // The axes of the target are the first ones of the reader.
      if (reader->target >= 0) add(stages_[reader->target]);
      add(*reader);
    }
    const std::string map = LayoutInOrderOfLoops(program(), Node(reader->block), constant, parts);
    if (map.empty()) return Inexact("list", "the loops do not visit the constant once");
    HONE_ASSIGN_OR_RETURN(
        const std::vector<Operand> copy,
        Apply("list", "cache_read",
              {reader->block, schedule::Text(*foreign_.free_layout), schedule::Text("global")}));
    return Apply("list", "transform_layout", {copy[0], schedule::Text(map)}).status();
  }

  const ForeignWorkload& foreign_;
  schedule::PartialReplay partial_;
  schedule::TraceBuilder builder_;
  std::vector<ReplayedStage> stages_;
  std::vector<ReplayedStep> steps_;
  std::vector<size_t> moving_;  // by stage: the step that moves it
  std::vector<std::pair<const ReplayedStep*, Operand>> kinds_;
  std::vector<std::pair<Operand, int64_t>> limits_;  // of unrolling
};

}  // namespace

absl::StatusOr<std::string> ReplayAnsor(const ForeignWorkload& workload, const json& steps,
                                        int64_t layout) {
  if (layout != kLayoutAsGiven && layout != kLayoutOfLoops)
    return Inexact("list", "a stage that stores the constants in another layout");
  HONE_ASSIGN_OR_RETURN(ir::Workload parsed, ir::ParseWorkload(workload.text));
  return AnsorReplay(workload, std::move(parsed)).Run(steps, layout);
}

}  // namespace hone::cli
