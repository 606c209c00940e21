#include "server/tuner/space/rule/rules.h"

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/schedule/replay.h"
#include "server/tuner/space/rule.h"

namespace hone::space {
namespace {

constexpr Rule kRules[] = {
    {.name = "wide_accumulator",
     .apply = ApplyWideAccumulator,
     .meaning = "sums of short floats accumulate in an f32 buffer",
     .serves = Serves::kAll},
    {.name = "auto_inline",
     .apply = ApplyAutoInline,
     .meaning = "element-wise producers are computed where they are read",
     .serves = Serves::kAll},
    {"transform", ApplyTransform,
     "small linear transforms of tiles, like Winograd's: unrolled, with or without the products "
     "between them",
     /*last_first=*/true},
    {"row_chain", ApplyRowChain,
     "chains of contractions, such as attention: all stages are computed for a block of rows of "
     "the last one",
     /*last_first=*/true},
    {"split_reduction", ApplySplitReduction,
     "contractions with few results: the reduction is split into parts for threads"},
    {"window_reduction", ApplyWindowReduction,
     "sums and maxima over windows: tiles of outputs in registers, the window unrolled"},
    {"tensor_tiling", ApplyTensorTiling,
     "contractions of short numbers: register tiles of an instruction that multiplies matrices"},
    {"transpose_output", ApplyTransposeOutput,
     "images with channels first: the vectors run along the channels of constant weights"},
    {"multi_level_tiling", ApplyMultiLevelTiling,
     "contractions: register tile, then tiles of loops in the order S S R S S R"},
    {"cache_write", ApplyCacheWrite,
     "a tiled block accumulates in its own buffer, which is copied out at the tile"},
    {"fuse_consumer", ApplyFuseConsumer,
     "an element-wise consumer of a tiled block runs at the tile"},
    {"pack", ApplyPack, "operands of contractions are copied into panels"},
    {"row_fused_reduction", ApplyRowFusedReduction,
     "reductions along rows, fused with their neighbours; split into parts if there are few rows",
     /*last_first=*/true},
    {"compute_location", ApplyComputeLocation,
     "a block that only one tiled block reads is computed at one of its tile loops"},
    {.name = "gpu_split_reduction",
     .apply = ApplyGpuSplitReduction,
     .meaning = "long sums with few results: partial sums, which a second kernel adds up",
     .serves = Serves::kGpus},
    {.name = "gpu_cross_thread_reduction",
     .apply = ApplyGpuCrossThreadReduction,
     .meaning = "contractions with few results: threads of a block share a sum",
     .serves = Serves::kGpus},
    {.name = "gpu_window_reduction",
     .apply = ApplyGpuWindowReduction,
     .meaning = "sums and maxima over windows: tiles of outputs in the registers of a thread",
     .serves = Serves::kGpus},
    {.name = "gpu_multi_level_tiling",
     .apply = ApplyGpuMultiLevelTiling,
     .meaning = "contractions: tiles of blocks, threads and registers, copies in shared memory",
     .serves = Serves::kGpus},
    {.name = "gpu_row_reduction",
     .apply = ApplyGpuRowReduction,
     .meaning = "reductions along rows, fused with their neighbours: several threads share a row",
     .last_first = true,
     .serves = Serves::kGpus},
    {.name = "gpu_transpose",
     .apply = ApplyGpuTranspose,
     .meaning = "transposes go through tiles in shared memory",
     .serves = Serves::kGpus},
    {.name = "gpu_auto_bind",
     .apply = ApplyGpuAutoBind,
     .meaning = "stages that no other rule has scheduled are distributed over blocks and threads",
     .serves = Serves::kGpus},
    {"parallel_vectorize_unroll", ApplyParallelVectorizeUnroll,
     "outer loops run on threads; untiled stages are vectorized along their last loop"},
};

constexpr uint64_t kDraws = 32;  // of a sketch's decisions, until one replays

// The built-in rules and the registered ones.
struct Registry {
  absl::Mutex mutex;
  std::vector<Rule> rules ABSL_GUARDED_BY(mutex) = {std::begin(kRules), std::end(kRules)};
  bool used ABSL_GUARDED_BY(mutex) = false;  // the rules must not change after the first use
};

Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

}  // namespace

absl::Span<const Rule> Rules() {
  Registry& registry = TheRegistry();
  const absl::MutexLock lock(&registry.mutex);
  registry.used = true;
  return registry.rules;
}

absl::Status RegisterRule(const Rule& rule, absl::string_view before) {
  if (rule.name.empty() || rule.apply == nullptr)
    return absl::InvalidArgumentError("a rule needs a name and a function");
  Registry& registry = TheRegistry();
  const absl::MutexLock lock(&registry.mutex);
  if (registry.used) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rule ", rule.name, " is registered too late: design spaces have already been generated"));
  }
  const auto find = [&](absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry.mutex) {
    return absl::c_find_if(registry.rules, [&](const Rule& known) { return known.name == name; });
  };
  if (find(rule.name) != registry.rules.end())
    return absl::AlreadyExistsError(absl::StrCat("a rule named ", rule.name, " already exists"));
  const auto at = find(before);
  if (at == registry.rules.end()) return absl::NotFoundError(absl::StrCat("unknown rule ", before));
  registry.rules.insert(at, rule);
  return absl::OkStatus();
}

Nest& Sketch::NestOf(absl::string_view block) {
  return *absl::c_find_if(nests, [&](const Nest& nest) { return nest.name == block; });
}

absl::StatusOr<std::shared_ptr<const ir::Program>> RuleContext::ProgramOf(
    const Sketch& sketch) const {
  const schedule::Trace& trace = sketch.trace.trace();
  const auto program_of = [](const std::shared_ptr<const SketchReplay>& replay) {
    return std::shared_ptr<const ir::Program>(replay, &replay->partial.replayed.program);
  };
  uint64_t attempt = 0;
  if (sketch.replay != nullptr) {
    if (sketch.replay->partial.instructions == trace.instructions.size())
      return program_of(sketch.replay);
    attempt = sketch.replay->attempt;  // earlier draws have failed for a part of the trace
  }
  // A draw may fail where sizes collide; other draws give the same blocks.
  absl::Status last;
  for (; attempt < kDraws; ++attempt) {
    const bool continues = sketch.replay != nullptr && attempt == sketch.replay->attempt;
    auto replay = std::make_shared<SketchReplay>(
        continues ? *sketch.replay
                  : SketchReplay{.partial = schedule::StartReplay(workload),
                                 .attempt = attempt,
                                 .rng = Rng(0x736b65746368, attempt)});
    schedule::RandomDecider decider(replay->rng);
    last = schedule::ContinueReplay(trace, decider, replay->partial);
    if (!last.ok()) continue;
    sketch.replay = std::move(replay);
    return program_of(sketch.replay);
  }
  return last;
}

}  // namespace hone::space
