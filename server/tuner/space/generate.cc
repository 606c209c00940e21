#include "server/tuner/space/generate.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/ir/intrinsic.h"
#include "common/schedule/rewrite/rewrite.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/part_spaces.h"
#include "server/tuner/space/rule.h"
#include "server/tuner/space/tensor_product.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {
namespace {

constexpr char kBf16[] = "bf16", kIm2col[] = "im2col", kJoinTaps[] = "join_taps",
               kPadImage[] = "pad_image", kPixelRows[] = "pixel_rows",
               kRegroupAxes[] = "regroup_axes", kWinograd[] = "winograd";
// Of the tiles of AMX.
constexpr int64_t kTileRows = 16, kTileRowBytes = 64;
// An image with no more channels gets terms of all taps of a line.
constexpr int64_t kFewChannels = 4;
// Output tile sizes. F(6, 3) would need a tolerance of 1e-4, and 64 products of few tiles each.
constexpr int64_t kWinogradTiles[] = {2, 4};

const ir::Stage* StageOf(const ir::Workload& workload, absl::string_view name) {
  for (const ir::Stage& stage : workload.stages) {
    if (workload.tensors[stage.tensors[0]].name == name) return &stage;
  }
  return nullptr;
}

// Whether a sum of products has a constant factor. Transforming the weights in each call would cost
// more than it saves.
bool HasConstantFactor(const ir::Workload& workload, const ir::Stage& stage) {
  bool constant = false;
  workload.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    constant |= workload.tensors[load.buffer].constant;
  });
  return constant;
}

// Whether the target has an instruction for dot products of bf16.
bool MultipliesBf16(const target::Target& target) {
  return std::ranges::any_of(ir::Intrinsics(), [&](const ir::Intrinsic& instruction) {
    if (instruction.arch != target.arch || !target.HasFeature(instruction.feature)) return false;
    const ir::Workload& description = ir::DescriptionOf(instruction);
    return description.tensors[description.Inputs()[0]].dtype == ir::DType::kBF16;
  });
}

// Applies a step to an algorithm. Returns whether the rewrite applies and the tolerance allows it,
// from which it takes what the rewrite needs.
bool Apply(RewriteStep step, double& tolerance, Algorithm& algorithm) {
  const absl::StatusOr<double> needed =
      schedule::RewriteTolerance(algorithm.rewritten, step.rewrite, step.stage, step.numbers);
  if (!needed.ok() || *needed > tolerance) return false;
  absl::StatusOr<ir::Workload> rewritten =
      schedule::ApplyRewriteTo(algorithm.rewritten, step.rewrite, step.stage, step.numbers);
  if (!rewritten.ok()) return false;
  tolerance -= *needed;
  algorithm.rewritten = *std::move(rewritten);
  algorithm.steps.push_back(std::move(step));
  return true;
}

// Adds an algorithm with one step if the rewrite applies and the tolerance allows it.
void Add(const ir::Workload& workload, std::string name, RewriteStep step, bool thoroughly,
         double tolerance, std::vector<Algorithm>& algorithms) {
  Algorithm algorithm{.name = std::move(name), .rewritten = workload, .thoroughly = thoroughly};
  if (Apply(std::move(step), tolerance, algorithm)) algorithms.push_back(std::move(algorithm));
}

// Returns the stages that im2col serves on the target.
std::vector<std::string> PaddedContractions(const ir::Workload& workload,
                                            const target::Target& target) {
  std::vector<std::string> names;
  if (target.kind == target::Kind::kCpu || !GpuTileLimits::Of(target).shared_memory) return names;
  const auto program = ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  for (const ir::Stage& stage : workload.stages) {
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    const ir::NodeId block = program.FindBlock(name);
    const std::optional<Contraction> contraction = AnalyzeContraction(program, block);
    if (contraction.has_value() && HasPaddedWindow(program, block, *contraction))
      names.push_back(name);
  }
  return names;
}

// Whether an index divides one of the axes, as c / 4 does.
bool DividesAxis(const ir::Workload& workload, const ir::Index& index,
                 absl::Span<const ir::Axis> axes) {
  return absl::c_any_of(index.terms(), [&](const ir::IndexTerm& term) {
    const ir::Atom& atom = workload.atoms[term.atom];
    if (atom.kind == ir::Atom::Kind::kVar) return false;
    const ir::AtomId var = atom.argument.SingleAtom();
    const bool is_axis =
        absl::c_any_of(axes, [&](const ir::Axis& axis) { return axis.var == var; });
    return (is_axis && atom.kind == ir::Atom::Kind::kFloorDiv) ||
           DividesAxis(workload, atom.argument, axes);
  });
}

// Whether a stage reads one of its axes in groups, as a grouped convolution reads its channels.
bool ReadsInGroups(const ir::Workload& workload, const ir::Stage& stage) {
  bool reads = false;
  workload.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    for (const ir::Index& index : workload.pool.IndicesOf(load))
      reads |= DividesAxis(workload, index, stage.spatial);
  });
  return reads;
}

// Returns the extent of an axis of a contraction. Returns 0 if the stage is no contraction.
int64_t ExtentOf(const ir::Workload& workload, absl::string_view stage, int Contraction::* axis) {
  const auto program = ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  const ir::NodeId block = program.FindBlock(stage);
  const std::optional<Contraction> contraction = AnalyzeContraction(program, block);
  if (!contraction.has_value()) return 0;
  return program.BlockOf(block).iters[(*contraction).*axis].extent;
}

// Returns the workload with other axes, which have the same elements in the same order: grouped
// convolutions become batches of products, and the vectors of 1×1 convolutions with channels first
// run along all pixels instead of one row of the image. Has no stages if there is no such stage.
Algorithm WithRegroupedAxes(const ir::Workload& workload, const target::Target& target) {
  Algorithm algorithm{.name = "pixels", .rewritten = workload, .thoroughly = true};
  for (const ir::Stage& stage : workload.stages) {
    if (stage.reducer == ir::Reducer::kNone) continue;
    const ir::Tensor& result = workload.tensors[stage.tensors[0]];
    const bool in_groups = ReadsInGroups(workload, stage);
    const int64_t extent = ExtentOf(workload, result.name, &Contraction::vector);
    const bool fills_vectors = extent % TileLimits::Of(target, result.dtype).lanes == 0;
    if (!in_groups && fills_vectors) continue;
    absl::StatusOr<ir::Workload> rewritten =
        schedule::ApplyRewriteTo(algorithm.rewritten, kRegroupAxes, result.name, {});
    if (!rewritten.ok()) continue;
    const int64_t after = ExtentOf(*rewritten, result.name, &Contraction::vector);
    if (after == 0 || (!in_groups && after <= extent)) continue;
    algorithm.rewritten = *std::move(rewritten);
    algorithm.steps.push_back({kRegroupAxes, result.name, {}});
    algorithm.replaces |= in_groups;
  }
  if (algorithm.replaces) algorithm.name = "groups";
  return algorithm;
}

// Returns how a stage reads through a window; nullopt if it does not.
std::optional<Window> WindowOf(const ir::Workload& workload, const std::string& stage) {
  const auto program = ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  return AnalyzeWindow(program, program.BlockOf(program.FindBlock(stage)));
}

// Returns the stages whose windows slide along the vectors in a padded copy of the image, such as
// depthwise convolutions with channels first. The copy has no masks, and its columns are in phases
// of the stride, so that vectors are contiguous.
std::vector<std::string> PaddedWindows(const ir::Workload& workload) {
  std::vector<std::string> names;
  for (const ir::Stage& stage : workload.stages) {
    if (stage.reducer != ir::Reducer::kSum) continue;
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    const absl::StatusOr<ir::Workload> padded =
        schedule::ApplyRewriteTo(workload, kPadImage, name, {});
    if (!padded.ok()) continue;
    const std::optional<Window> window = WindowOf(*padded, name);
    if (!window.has_value() || !window->slides_along_vectors) continue;
    const std::optional<Window> uncopied = WindowOf(workload, name);
    const bool strides = !uncopied.has_value() || !uncopied->slides_along_vectors;
    if (strides || !stage.guards.empty()) names.push_back(name);
  }
  return names;
}

// Whether an instruction on tiles computes the stage.
bool FillsTiles(const ir::Workload& workload, const target::Target& target,
                absl::string_view stage) {
  const auto program = ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  const ir::NodeId block = program.FindBlock(stage);
  const std::optional<Contraction> contraction = AnalyzeContraction(program, block);
  if (!contraction.has_value()) return false;
  // A padded copy of an image would be made in the loops of its window.
  const int64_t terms = program.BlockOf(block).iters[contraction->reduce].extent;
  return absl::c_any_of(
      TensorProductsFor(target, program, block, *contraction), [&](const TensorProduct& product) {
        return product.is_tile() && (contraction->windows.empty() || terms % product.terms == 0);
      });
}

// Returns the tensor of sums that a rewritten stage computes or copies.
std::string SumOf(const ir::Workload& workload, const std::string& name) {
  const ir::Stage& stage = *StageOf(workload, name);
  std::string sum = name;
  if (stage.reducer == ir::Reducer::kNone) {
    workload.pool.VisitLoads(
        stage.values[0], [&](const ir::Expr& load) { sum = workload.tensors[load.buffer].name; });
  }
  return sum;
}

// Returns the number of terms of an instruction on tiles for the products of a stage.
int64_t TermsOfTile(const ir::Workload& workload, const ir::Stage& stage) {
  int64_t bytes = 2;  // f32 becomes bf16
  workload.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    bytes = std::min<int64_t>(bytes, ir::DTypeBytes(workload.tensors[load.buffer].dtype));
  });
  return kTileRowBytes / bytes;
}

// Adds algorithms with which instructions on tiles compute a stage that they do not compute as
// written, because its image has padding or its lines do not fill the rows of tiles. Products of
// f32 become those of bf16, too, if the tolerance allows it.
void AddRowsForTiles(const ir::Workload& workload, const target::Target& target, double tolerance,
                     std::vector<Algorithm>& algorithms) {
  const bool has_tiles = absl::c_any_of(ir::Intrinsics(), [&](const ir::Intrinsic& each) {
    return each.shape == ir::Intrinsic::Shape::kTile && each.arch == target.arch &&
           target.HasFeature(each.feature);
  });
  if (!has_tiles) return;
  for (const ir::Stage& stage : workload.stages) {
    if (stage.reducer != ir::Reducer::kSum) continue;
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    const auto make = [&](absl::string_view called, RewriteStep step) {
      Algorithm algorithm{.name = std::string(called), .rewritten = workload, .thoroughly = true};
      double left = tolerance;
      if (!step.rewrite.empty() && !Apply(step, left, algorithm)) return false;
      const std::string sum = SumOf(algorithm.rewritten, name);
      if (!FillsTiles(algorithm.rewritten, target, sum)) {
        if (!Apply({kBf16, sum, {}}, left, algorithm) ||
            !FillsTiles(algorithm.rewritten, target, sum))
          return false;
        algorithm.name = absl::StrCat(kBf16, "_", called);
      }
      if (step.rewrite.empty()) return true;
      const bool known = absl::c_any_of(
          algorithms, [&](const Algorithm& other) { return other.name == algorithm.name; });
      if (known) absl::StrAppend(&algorithm.name, "_", name);
      algorithms.push_back(std::move(algorithm));
      return true;
    };
    const int64_t terms = TermsOfTile(workload, stage);
    if (make("", {}) || make("pixels", {kRegroupAxes, name, {}}) ||
        (ExtentOf(workload, name, &Contraction::reduce) <= kFewChannels &&
         make("taps", {kJoinTaps, name, {terms}})) ||
        make("padded", {kPixelRows, name, {0, terms}}))
      continue;
    make("rows", {kPixelRows, name, {kTileRows, terms}});
  }
}

constexpr int kMaxMinor = 1;          // per component
constexpr size_t kThorough = 64;      // the first spaces are probed thoroughly
constexpr size_t kMaxSketches = 256;  // limit for intermediate sketches
// Replays that may fail, times stages, while the spaces of a workload are tried out. Takes half a
// second.
constexpr int64_t kFailures = 120000;

// Adds a block register and a nest per stage. `minor` is the initial value for every component.
void AddNests(const ir::Workload& workload, int minor, Sketch& sketch) {
  const std::vector<int> components = StageComponents(workload);
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const std::string& name = workload.tensors[workload.stages[s].tensors[0]].name;
    sketch.nests.push_back({.name = name,
                            .block = sketch.trace.Add("block", {schedule::Text(name)})[0],
                            .component = components[s]});
    sketch.components.resize(std::max(sketch.components.size(), components[s] + size_t{1}),
                             {.minor = minor});
  }
}

Sketch InitialSketch(const ir::Workload& workload) {
  Sketch sketch;
  AddNests(workload, /*minor=*/0, sketch);
  return sketch;
}

// Makes the initial sketch for another algorithm, which has its own stages.
Sketch InitialSketch(const Algorithm& algorithm) {
  Sketch sketch;
  for (const RewriteStep& step : algorithm.steps) {
    std::vector<schedule::Operand> operands = {schedule::Text(step.rewrite),
                                               schedule::Text(step.stage)};
    for (const int64_t number : step.numbers) operands.push_back(Literal(number));
    sketch.trace.Add("rewrite", std::move(operands));
  }
  AddNests(algorithm.rewritten, /*minor=*/algorithm.thoroughly ? 0 : kMaxMinor, sketch);
  sketch.name.push_back(algorithm.name);
  return sketch;
}

// Returns the block for a rule's turn; nullopt if the sketch has no more blocks.
std::optional<int> NestAt(const Rule& rule, const Sketch& sketch, size_t turn) {
  if (turn >= sketch.nests.size()) return std::nullopt;
  return static_cast<int>(rule.last_first ? sketch.nests.size() - 1 - turn : turn);
}

// Applies a rule to a block of a sketch and drops results with too many minor alternatives; nullopt
// if the rule does not apply.
std::optional<std::vector<Sketch>> Alternatives(const RuleContext& context, const Rule& rule,
                                                Sketch& sketch, int nest) {
  const int component = sketch.nests[nest].component;
  sketch.minor = sketch.components[component].minor;
  std::vector<Sketch> alternatives = rule.apply(context, sketch, nest);
  if (alternatives.empty()) return std::nullopt;
  std::erase_if(alternatives, [](const Sketch& s) { return s.minor > kMaxMinor; });
  for (size_t a = 0; a < alternatives.size(); ++a) {
    Sketch& alternative = alternatives[a];
    for (size_t added = sketch.nests.size(); added < alternative.nests.size(); ++added)
      alternative.nests[added].component = component;
    ComponentChoices& choices = alternative.components[component];
    choices.minor = alternative.minor;
    if (alternatives.size() > 1) choices.taken.push_back(static_cast<int>(a));
  }
  return alternatives;
}

// Applies a rule to one block of every sketch.
//
// The alternatives of a component are combined with each other, but not with those of other
// components, because the product would be large and add nothing. Sketches that made the same
// choices in the current component divide the alternatives among them: the i-th sketch takes the
// i-th one. If there are more sketches, they start again from the first; if there are more
// alternatives, a sketch takes several. Each alternative thus occurs, and there are about as many
// sketches as the component with the most choices needs.
std::vector<Sketch> ApplyToBlock(const RuleContext& context, const Rule& rule, size_t turn,
                                 std::vector<Sketch> sketches) {
  using Group = std::pair<int, ComponentChoices>;
  const auto group_of = [](const Sketch& sketch, int nest) -> Group {
    const int component = sketch.nests[nest].component;
    return {component, sketch.components[component]};
  };
  std::map<Group, size_t> sizes, seen;
  for (const Sketch& sketch : sketches) {
    if (const std::optional<int> nest = NestAt(rule, sketch, turn))
      ++sizes[group_of(sketch, *nest)];
  }
  std::vector<Sketch> next;
  const auto keep = [&](Sketch sketch) {
    if (next.size() < kMaxSketches) next.push_back(std::move(sketch));
  };
  for (Sketch& sketch : sketches) {
    const std::optional<int> nest = NestAt(rule, sketch, turn);
    if (!nest.has_value()) {
      keep(std::move(sketch));
      continue;
    }
    const Group group = group_of(sketch, *nest);
    const size_t size = sizes[group], place = seen[group]++;
    std::optional<std::vector<Sketch>> alternatives = Alternatives(context, rule, sketch, *nest);
    if (!alternatives.has_value()) {
      keep(std::move(sketch));
    } else if (const size_t count = alternatives->size(); place >= count && count > 0) {
      keep(std::move((*alternatives)[place % count]));
    } else {
      for (size_t a = place; a < count; a += size) keep(std::move((*alternatives)[a]));
    }
  }
  return next;
}

absl::Status Check(const Generation& generation) {
  return generation.check == nullptr ? absl::OkStatus() : generation.check();
}

absl::StatusOr<std::vector<Sketch>> ApplyRules(const RuleContext& context, Sketch initial,
                                               const Generation& generation) {
  std::vector<Sketch> sketches;
  sketches.push_back(std::move(initial));
  const absl::Span<const Rule> rules =
      generation.rules == nullptr ? Rules() : absl::MakeConstSpan(*generation.rules);
  for (const Rule& rule : rules) {
    if (!rule.Fits(*context.target)) continue;
    // The number of nests can grow, because rules add nests for the blocks that they create.
    for (size_t turn = 0;
         absl::c_any_of(sketches, [&](const Sketch& s) { return turn < s.nests.size(); }); ++turn) {
      HONE_RETURN_IF_ERROR(Check(generation));
      sketches = ApplyToBlock(context, rule, turn, std::move(sketches));
    }
  }
  return sketches;
}

}  // namespace

bool FitsWinograd(const ir::Workload& workload, absl::string_view stage, int64_t m,
                  double tolerance) {
  if (tolerance <= 0) return false;
  const absl::StatusOr<double> needed = schedule::RewriteTolerance(workload, kWinograd, stage, {m});
  if (!needed.ok() || *needed > tolerance) return false;
  // The rewrite supports stages with the axes n, h, w, co.
  const std::vector<ir::Axis>& axes = StageOf(workload, stage)->spatial;
  return axes[1].extent >= m && axes[2].extent >= m;
}

std::vector<Algorithm> AlgorithmsFor(const ir::Workload& workload, const target::Target& target,
                                     double tolerance) {
  std::vector<Algorithm> algorithms;
  for (const std::string& name : PaddedContractions(workload, target)) {
    Add(workload, kIm2col, {kIm2col, name, {}}, /*thoroughly=*/true, tolerance, algorithms);
  }
  if (target.kind == target::Kind::kCpu) {
    Algorithm regrouped = WithRegroupedAxes(workload, target);
    if (!regrouped.steps.empty()) algorithms.push_back(std::move(regrouped));
    for (const std::string& name : PaddedWindows(workload)) {
      Add(workload, "padded", {kPadImage, name, {}}, /*thoroughly=*/true, tolerance, algorithms);
    }
    AddRowsForTiles(workload, target, tolerance, algorithms);
  }
  if (tolerance <= 0) return algorithms;
  for (const ir::Stage& stage : workload.stages) {
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    for (const int64_t m : kWinogradTiles) {
      if (FitsWinograd(workload, name, m, tolerance) && HasConstantFactor(workload, stage))
        Add(workload, absl::StrCat(kWinograd, m), {kWinograd, name, {m}}, /*thoroughly=*/false,
            tolerance, algorithms);
    }
    if (MultipliesBf16(target))
      Add(workload, kBf16, {kBf16, name, {}}, /*thoroughly=*/false, tolerance, algorithms);
  }
  return algorithms;
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target,
    const Generation& generation) {
  HONE_RETURN_IF_ERROR(workload->Validate());
  if (const std::vector<StageRange> parts = PartsOf(*workload); HasManyParts(*workload, parts))
    return SpacesOfParts(std::move(workload), parts, target, generation);
  const RuleContext context{workload, &target};
  const std::vector<Algorithm> algorithms =
      generation.rewrites ? AlgorithmsFor(*workload, target, generation.tolerance)
                          : std::vector<Algorithm>();
  std::vector<Sketch> sketches;
  if (absl::c_none_of(algorithms, [](const Algorithm& each) { return each.replaces; })) {
    HONE_ASSIGN_OR_RETURN(sketches, ApplyRules(context, InitialSketch(*workload), generation));
  }
  for (const Algorithm& algorithm : algorithms) {
    HONE_ASSIGN_OR_RETURN(std::vector<Sketch> others,
                          ApplyRules(context, InitialSketch(algorithm), generation));
    for (Sketch& sketch : others) sketches.push_back(std::move(sketch));
  }
  std::vector<std::unique_ptr<DesignSpace>> spaces;
  int64_t failures = kFailures;
  for (Sketch& sketch : sketches) {
    HONE_RETURN_IF_ERROR(Check(generation));
    sketch.replay.reset();
    const std::string name = sketch.name.empty() ? "plain" : absl::StrJoin(sketch.name, "_");
    absl::StatusOr<std::unique_ptr<DesignSpace>> space = DesignSpace::Create(
        name, workload, std::move(sketch.trace).Build(), std::move(sketch.constraints),
        {.thorough = spaces.size() < kThorough, .failures = &failures});
    if (!space.ok()) {
      if (generation.dropped != nullptr) ++*generation.dropped;
      continue;
    }
    const bool known =
        absl::c_any_of(spaces, [&](const auto& s) { return s->digest() == (*space)->digest(); });
    if (!known) spaces.push_back(*std::move(space));
  }
  if (spaces.empty()) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<DesignSpace> untiled,
                          DefaultCandidate(std::move(workload), target));
    spaces.push_back(std::move(untiled));
  }
  return spaces;
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target, double tolerance) {
  return GenerateDesignSpaces(std::move(workload), target, Generation{.tolerance = tolerance});
}

}  // namespace hone::space
