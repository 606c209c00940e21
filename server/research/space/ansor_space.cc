#include "server/research/space/ansor_space.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/primitive/loops.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/rule.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int kSpatialLevels = 4, kReductionLevels = 2;
constexpr int64_t kMostInnermost = 64;  // size of an innermost part
constexpr int64_t kMostUnrolled = 512;  // statements: the largest auto_unroll_max_step on CPUs

// What happens to the result of a tiled block.
enum class Output { kStored, kCached, kConsumed };

class AnsorTiler {
 public:
  AnsorTiler(const Sketch& sketch, int nest, const NestBlock& found)
      : sketch_(sketch), nest_(nest), found_(found), block_(found.block()) {}

  // `level`: of the tile at whose end the result is copied or consumed, 0 or 1. `consumer`: a nest.
  Sketch Run(Output output, int level, int consumer) {
    const std::vector<Operand> loops = edit_.Loops(sketch_.nests[nest_].block, block_.iters.size());
    std::vector<std::vector<Operand>> spatial(kSpatialLevels), reduction(kReductionLevels);
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      if (block_.iters[i].extent == 1) {
        (block_.iters[i].reduce ? reduction : spatial)[0].push_back(loops[i]);
      } else {
        Tile(loops[i], block_.iters[i].reduce ? reduction : spatial);
      }
    }
    std::vector<Operand> order;
    // S S R S R S
    for (const auto* tiles :
         {&spatial[0], &spatial[1], &reduction[0], &spatial[2], &reduction[1], &spatial[3]}) {
      Append(order, *tiles);
    }
    edit_.Add("reorder", order);
    const Operand outer = edit_.Fuse(spatial[0]);
    const bool inside = level == 1 && !spatial[1].empty();
    Place(output, consumer, inside ? spatial[1].back() : outer);
    edit_.Add("parallel", {outer});
    if (!spatial[3].empty()) edit_.Add("vectorize", {spatial[3].back()});
    std::vector<Operand> unrolled = reduction[1];
    for (size_t i = 0; i + 1 < spatial[3].size(); ++i) unrolled.push_back(spatial[3][i]);
    Unroll(unrolled);
    sketch_.nests[nest_].state = Nest::State::kDone;
    sketch_.name.push_back("ssrsrs");
    if (output == Output::kCached) sketch_.name.push_back("cache");
    if (output == Output::kConsumed) sketch_.name.push_back("fused");
    if (output != Output::kStored) sketch_.name.push_back(absl::StrCat("at", level + 1));
    return std::move(sketch_);
  }

 private:
  void Tile(const Operand& loop, std::vector<std::vector<Operand>>& tiles) {
    std::vector<Operand> operands = edit_.Add(
        "sample_perfect_tile", {loop},
        {{"parts", {static_cast<int64_t>(tiles.size())}}, {"max_inner", {kMostInnermost}}},
        static_cast<int>(tiles.size()));
    operands.insert(operands.begin(), loop);
    const int parts = static_cast<int>(tiles.size());
    const std::vector<Operand> split = edit_.Add("split", operands, {}, parts);
    for (int level = 0; level < parts; ++level) {
      tiles[level].push_back(split[level]);
      extent_of_[split[level].reg] = DecisionOf(operands[level + 1]);
    }
  }

  // Decides for each loop whether it is unrolled.
  void Unroll(const std::vector<Operand>& loops) {
    std::vector<std::pair<int, int>> unrolled;  // decisions: whether, and the loop's extent
    int reads = 0;
    for (const Operand& loop : loops) {
      const auto extent = extent_of_.find(loop.reg);
      if (extent == extent_of_.end()) continue;
      const Operand kind = edit_.Sample({schedule::kKeepSerial, schedule::kUnroll});
      edit_.Add("loop_kind", {loop, kind});
      unrolled.emplace_back(DecisionOf(kind), extent->second);
      reads = std::max({reads, DecisionOf(kind) + 1, extent->second + 1});
    }
    if (unrolled.empty()) return;
    sketch_.constraints.push_back(
        {"statements", reads, [unrolled](absl::Span<const int64_t> decisions) {
           int64_t statements = 1;
           for (const auto& [whether, extent] : unrolled) {
             if (decisions[whether] == schedule::kUnroll) statements *= decisions[extent];
           }
           return statements <= kMostUnrolled;
         }});
  }

  // Computes the consumer, or a copy of the result, at a loop, and vectorizes it along its rows.
  void Place(Output output, int consumer, const Operand& at) {
    if (output == Output::kStored) return;
    Operand block;
    if (output == Output::kConsumed) {
      block = sketch_.nests[consumer].block;
      sketch_.nests[consumer].state = Nest::State::kDone;
    } else {
      block = edit_.Add("cache_write", {sketch_.nests[nest_].block, schedule::Text("global")})[0];
    }
    edit_.Add("reverse_compute_at", {block, at});
    const Operand row = edit_.Add("loops", {block, Literal(1)}, {}, 1)[0];
    const std::vector<Operand> sizes =
        edit_.Add("sample_perfect_tile", {row},
                  {{"parts", {2}}, {"max_inner", {std::max<int64_t>(1, found_.limits.lanes)}}});
    edit_.Add("vectorize", {edit_.Add("split", {row, sizes[0], sizes[1]}, {}, 2)[1]});
  }

  Sketch sketch_;
  SketchEditor edit_{sketch_};
  const int nest_;
  const NestBlock& found_;
  const ir::Block& block_;
  std::map<int, int> extent_of_;  // the decision that is a loop's extent, by register
};

std::vector<Sketch> ApplyAnsorTiling(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  if (!AnalyzeContraction(program, found->id).has_value()) return {};  // nothing is read again
  std::vector<Sketch> sketches;
  const int consumer = ElementwiseConsumer(sketch, program, found->id);
  for (const int level : {0, 1}) {
    if (consumer < 0 && !found->output().output) continue;  // of another block that runs elsewhere
    const Output output = consumer >= 0 ? Output::kConsumed : Output::kCached;
    sketches.push_back(AnsorTiler(sketch, nest, *found).Run(output, level, consumer));
  }
  sketches.push_back(AnsorTiler(sketch, nest, *found).Run(Output::kStored, 0, -1));
  return sketches;
}

std::vector<Rule> RulesFor(const target::Target& target) {
  std::vector<std::string> names = {"wide_accumulator", "auto_inline"};
  if (target.kind == target::Kind::kCpu) {
    names.insert(names.end(), {"split_reduction", "parallel_vectorize_unroll"});
  } else {
    names.insert(names.end(), {"gpu_cross_thread_reduction", "gpu_multi_level_tiling",
                               "gpu_row_reduction", "gpu_auto_bind"});
  }
  std::vector<Rule> rules;
  for (const Rule& rule : Rules()) {
    if (rule.name == "parallel_vectorize_unroll") {
      rules.push_back({"ansor_multi_level_tiling", ApplyAnsorTiling,
                       "contractions: tiles of loops in the order S S R S R S"});
    }
    if (absl::c_linear_search(names, rule.name)) rules.push_back(rule);
  }
  return rules;
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> ByAnsorsRules(
    const SpaceRequest& request) {
  const std::vector<Rule> rules = RulesFor(*request.target);
  Generation generation = request.generation;
  generation.rules = &rules;
  generation.rewrites = false;
  return GenerateDesignSpaces(request.workload, *request.target, generation);
}

}  // namespace

constexpr SpaceMaker kAnsorMaker = {
    "ansor", [](const ir::Workload&) { return absl::OkStatus(); }, ByAnsorsRules,
    "Ansor's rules: tiles in the order S S R S R S, without packing and register tiles"};

}  // namespace hone::space
