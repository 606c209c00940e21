#include "server/job/actor/compiler_environment.h"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/counted.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/ir/roofline.h"
#include "common/ir/workload.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/space/design_space.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/maker.h"
#include "server/tuner/space/transfer.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

constexpr char kDefaultFeatures[] = "statement";
constexpr int kManyStages = 16;
constexpr int kLeastPopulation = 64;   // of a search in spaces of many parts
constexpr int kFirstPopulation = 128;  // of the first choice for a task of a network

const ir::Expr& WithoutCasts(const ir::Workload& workload, ir::ExprId id) {
  const ir::Expr* expr = &workload.pool[id];
  while (expr->op == ir::Op::kCast) expr = &workload.pool[expr->a];
  return *expr;
}

// Returns whether the stage sums products of two loads in f32 or a wider type, and no factor can be
// moved out of the sum and no result is repeated. As long as sums are not rearranged, every kernel
// then performs all multiply-adds of the stage.
bool HasFixedFlops(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.reducer != ir::Reducer::kSum) return false;
  const ir::Expr& product = WithoutCasts(workload, stage.values[0]);
  if (product.op != ir::Op::kMul) return false;
  std::map<ir::AtomId, int> used;  // axis → number of loads that use it
  for (const ir::ExprId factor : {product.a, product.b}) {
    const ir::Expr& load = WithoutCasts(workload, factor);
    if (load.op != ir::Op::kLoad || ir::DTypeBytes(load.dtype) < 4) return false;
    std::set<ir::AtomId> axes;
    for (const ir::Index& index : workload.pool.IndicesOf(load)) {
      workload.atoms.VisitVars(index, [&](ir::AtomId var) { axes.insert(var); });
    }
    for (const ir::AtomId axis : axes) ++used[axis];
  }
  const auto is_used_by = [&](int loads) {
    return [&used, loads](const ir::Axis& axis) { return used[axis.var] >= loads; };
  };
  return absl::c_all_of(stage.reduce, is_used_by(2)) &&
         absl::c_all_of(stage.spatial, is_used_by(1));
}

double FixedFlops(const ir::Workload& workload) {
  double flops = 0;
  for (const ir::Stage& stage : workload.stages) {
    if (HasFixedFlops(workload, stage)) flops += 2 * ir::GuardedPoints(workload.atoms, stage);
  }
  return flops;
}

bool IsWideFloat(ir::DType dtype) { return ir::IsFloat(dtype) && ir::DTypeBytes(dtype) >= 4; }

bool IsNarrowLoad(const ir::Expr& expr) {
  return expr.op == ir::Op::kLoad && ir::DTypeBytes(expr.dtype) < 4;
}

// Returns whether the stage computes in floats of 32 bits or more, or computes nothing. Devices
// have faster instructions for integers, for narrow floats, and for sums of products of either.
bool ComputesInWideFloats(const ir::Workload& workload, const ir::Stage& stage) {
  return absl::c_all_of(stage.values, [&](ir::ExprId id) {
    const ir::Expr& value = WithoutCasts(workload, id);
    const bool computes = stage.reducer != ir::Reducer::kNone || value.a != ir::kNoExpr;
    if (!computes) return true;
    if (!IsWideFloat(value.dtype) && !IsWideFloat(workload.pool[id].dtype)) return false;
    return value.op != ir::Op::kMul || !IsNarrowLoad(WithoutCasts(workload, value.a)) ||
           !IsNarrowLoad(WithoutCasts(workload, value.b));
  });
}

bool HasFmaPeak(const ir::Workload& workload) {
  return absl::c_all_of(workload.stages, [&](const ir::Stage& stage) {
    return ComputesInWideFloats(workload, stage);
  });
}

using Draft = std::shared_ptr<const cost_model::CostModel>;

class CompilerSpaces final : public TaskSpaces {
 public:
  static absl::StatusOr<std::unique_ptr<TaskSpaces>> Make(const std::string& workload_text,
                                                          const std::string& target_text,
                                                          const std::string& space,
                                                          double tolerance, StopCheck check,
                                                          Draft draft, int threads) {
    HONE_ASSIGN_OR_RETURN(ir::Workload parsed, ir::ParseWorkload(workload_text));
    auto workload = std::make_shared<const ir::Workload>(std::move(parsed));
    auto made = std::make_unique<CompilerSpaces>();
    made->threads_ = threads;
    HONE_ASSIGN_OR_RETURN(made->target_, target::Target::FromText(target_text));
    made->check_ = std::move(check);
    int dropped = 0;
    if (draft == nullptr) {
      draft = cost_model::MakeModel(cost_model::kDraftModel);
    } else {
      made->target_.calibration = {};  // a learned draft has factors for the constants of the kind
    }
    made->draft_ = draft;
    const space::Generation generation{.tolerance = tolerance,
                                       .score =
                                           [&](const ir::Program& program) {
                                             return search::DraftScoreOf(*draft, program,
                                                                         made->target_);
                                           },
                                       .check = made->check_,
                                       .dropped = &dropped};
    HONE_ASSIGN_OR_RETURN(
        made->searched_,
        space::MakeSpaces(
            {.workload = workload, .target = &made->target_, .generation = generation}, space));
    if (dropped > 0) {
      spdlog::info("workload {}: {} dropped, because their schedules do not replay", workload->name,
                   Counted(dropped, "design space"));
    }
    if (space::IsTraceText(space)) {
      const space::DesignSpace& one = *made->searched_[0];
      if (auto only = one.only()) made->only_ = {one.digest(), *std::move(only)};
    }
    HONE_RETURN_IF_ERROR(made->Finish(workload));
    return made;
  }

  static absl::StatusOr<std::unique_ptr<TaskSpaces>> OfTexts(const std::vector<std::string>& texts,
                                                             const std::string& target_text,
                                                             int threads) {
    auto made = std::make_unique<CompilerSpaces>();
    made->threads_ = threads;
    HONE_ASSIGN_OR_RETURN(made->target_, target::Target::FromText(target_text));
    for (const std::string& text : texts) {
      HONE_ASSIGN_OR_RETURN(std::unique_ptr<space::DesignSpace> space,
                            space::DesignSpace::FromText(text));
      made->searched_.push_back(std::move(space));
    }
    if (texts.empty()) return absl::InvalidArgumentError("no design space is given");
    const std::shared_ptr<const ir::Workload>& workload = made->searched_.front()->workload();
    for (const auto& space : made->searched_) {
      if (space->workload()->StructuralDigest() != workload->StructuralDigest()) {
        return absl::InvalidArgumentError("the design spaces belong to several workloads");
      }
    }
    HONE_RETURN_IF_ERROR(made->Finish(workload));
    return made;
  }

  const std::vector<SpaceInfo>& spaces() const override { return infos_; }
  record::Candidate default_schedule() const override { return {default_->digest(), {}}; }
  std::optional<record::Candidate> only_candidate() const override { return only_; }
  bool IsSearched(const record::Candidate& candidate) const override {
    auto found = by_digest_.find(candidate.space_digest);
    return found != by_digest_.end() && found->second.index != kDefault;
  }
  bool IsLegal(const record::Candidate& candidate) const override {
    if (!IsSearched(candidate)) return false;
    const space::DesignSpace& space = *by_digest_.at(candidate.space_digest).space;
    return static_cast<int>(candidate.decisions.size()) == space.decision_count() &&
           space.IsLegal(candidate.decisions);
  }
  absl::StatusOr<std::unique_ptr<search::SearchStrategy>> CreateStrategy(
      const std::string& name, uint64_t seed, bool quick_start) const override {
    search::SearchContext context{
        .target = target_, .draft = draft_, .seed = seed, .threads = threads_, .check = check_};
    // The time of a replay grows faster than the number of stages.
    const auto stages = static_cast<int>(searched_[0]->workload()->stages.size());
    if (stages > kManyStages) {
      context.population = std::max(
          kLeastPopulation, context.population * kManyStages / stages * kManyStages / stages);
    }
    const int whole = context.population;
    for (const auto& space : searched_) {
      context.spaces.push_back(space.get());
      if (!space->suggested().empty())
        context.seeds.push_back({space->digest(), space->suggested()});
      // The time of a replay grows with the number of parts.
      context.population =
          std::min(context.population, std::max(kLeastPopulation, whole / space->part_count()));
    }
    if (quick_start) context.first_population = std::min(context.population, kFirstPopulation);
    return search::CreateSearchStrategy(name, std::move(context));
  }
  absl::Status CheckFeatureSet(const std::string& feature_set) const override {
    if (feature_set.empty()) return absl::OkStatus();
    const absl::StatusOr<const feature::FeatureSet*> features =
        feature::FindFeatureSet(feature_set);
    if (!features.ok()) return absl::InvalidArgumentError(features.status().message());
    for (const auto& space : searched_) {
      if (space->decision_count() <= (*features)->MaxDecisions()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "feature set '", feature_set, "' describes at most ", (*features)->MaxDecisions(),
          " decisions, and the design space ", space->name(), " has ", space->decision_count()));
    }
    return absl::OkStatus();
  }
  absl::Status AppendFeatures(const std::string& feature_set, const record::Candidate& candidate,
                              cost_model::FeatureMatrix* matrix) const override {
    auto space = by_digest_.find(candidate.space_digest);
    if (space == by_digest_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no space of this task has the digest ", candidate.space_digest));
    }
    HONE_ASSIGN_OR_RETURN(const feature::FeatureSet* features,
                          feature::FindFeatureSet(feature_set));
    std::vector<float> rows;
    int count = 0;
    HONE_RETURN_IF_ERROR(search::AppendRowsOf(
        *features, *space->second.space,
        {space->second.index, candidate.decisions, &space->second.space->trace()}, target_, rows,
        count));
    matrix->columns = features->Columns();
    matrix->Append(rows, count);
    return absl::OkStatus();
  }
  absl::StatusOr<record::Candidate> Adapt(const std::string& space,
                                          const std::vector<int64_t>& decisions) const override {
    HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(space));
    const int index = IndexLike(file.parsed.trace);
    if (index < 0)
      return absl::NotFoundError("no design space of this task has the structure of the trace");
    const space::DesignSpace& like = *searched_[index];
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> nearest, like.Nearest(decisions));
    HONE_RETURN_IF_ERROR(like.Replay(nearest).status());
    return record::Candidate{like.digest(), std::move(nearest)};
  }
  GivenCandidate ReadTrace(const std::string& trace, double tolerance) const override {
    const auto refused = [](Refusal refusal, absl::string_view why) {
      return GivenCandidate{.refusal = refusal, .why = std::string(why)};
    };
    absl::StatusOr<schedule::TraceFile> file = schedule::ParseTraceFile(trace);
    if (!file.ok()) return refused(Refusal::kMalformed, file.status().message());
    const ir::Workload& own = *searched_[0]->workload();
    if (file->workload.StructuralDigest() != own.StructuralDigest()) {
      return refused(Refusal::kOtherWorkload,
                     absl::StrCat("the trace schedules ", file->workload.name,
                                  ", another computation than the job's ", own.name,
                                  "; begin with the workload of the job"));
    }
    const absl::Status decided =
        schedule::CheckDecided(file->parsed, "a proposal is a single candidate");
    if (!decided.ok()) return refused(Refusal::kOpen, decided.message());
    const auto rewrites =
        schedule::RewritesOf(file->workload, file->parsed.trace, file->parsed.decisions);
    if (!rewrites.ok()) return refused(Refusal::kIllegal, rewrites.status().message());
    for (const schedule::UsedRewrite& rewrite : *rewrites) {
      if (rewrite.tolerance <= tolerance) continue;
      return refused(Refusal::kTolerance,
                     absl::StrCat("the rewrite ", rewrite.name, " needs a job with a tolerance of ",
                                  rewrite.tolerance, ", and that of this job is ", tolerance));
    }
    // Other names of axes must not make another candidate of a schedule. A trace may name tensors.
    const bool names_same_tensors =
        absl::c_equal(file->workload.tensors, own.tensors,
                      [](const ir::Tensor& a, const ir::Tensor& b) { return a.name == b.name; });
    const std::string with_own_names = schedule::TraceFileText(own, file->parsed.trace);
    const auto space = space::DesignSpace::OfOneCandidate(
        "proposed",
        names_same_tensors || by_digest_.contains(DigestOf(with_own_names).ToHex())
            ? searched_[0]->workload()
            : std::make_shared<const ir::Workload>(std::move(file->workload)),
        std::move(file->parsed.trace), file->parsed.decisions);
    if (!space.ok()) return refused(Refusal::kIllegal, space.status().message());
    return {.candidate = {(*space)->digest(), std::move(file->parsed.decisions)},
            .space = (*space)->text()};
  }

 private:
  static constexpr int kDefault = -1;  // index of the default schedule's space
  struct Known {
    const space::DesignSpace* space = nullptr;
    int index = kDefault;  // in searched_
  };

  // Returns the searched space that has the trace's structure and the most instructions in common;
  // kDefault: none.
  int IndexLike(const schedule::Trace& trace) const {
    const std::string structure = space::StructureOf(trace);
    int like = kDefault, equal = -1;
    for (size_t i = 0; i < searched_.size(); ++i) {
      if (space::StructureOf(searched_[i]->trace()) != structure) continue;
      const int now = space::EqualInstructions(searched_[i]->trace(), trace);
      if (now > equal) like = static_cast<int>(i), equal = now;
    }
    return like;
  }
  absl::Status Finish(const std::shared_ptr<const ir::Workload>& workload) {
    HONE_ASSIGN_OR_RETURN(default_, space::DefaultCandidate(workload, target_));
    for (size_t i = 0; i < searched_.size(); ++i) Know(*searched_[i], static_cast<int>(i));
    if (!by_digest_.contains(default_->digest())) Know(*default_, kDefault);
    return absl::OkStatus();
  }
  void Know(const space::DesignSpace& space, int index) {
    by_digest_[space.digest()] = {&space, index};
    infos_.push_back({space.digest(), space.text()});
  }

  int threads_ = 1;
  StopCheck check_;
  Draft draft_;
  target::Target target_;
  std::vector<std::unique_ptr<space::DesignSpace>> searched_;
  std::unique_ptr<space::DesignSpace> default_;
  std::optional<record::Candidate> only_;
  std::map<std::string, Known> by_digest_;
  std::vector<SpaceInfo> infos_;
};

class CompilerEnvironment final : public TaskEnvironment {
 public:
  explicit CompilerEnvironment(int threads) : threads_(threads) {}

  absl::StatusOr<WorkloadInfo> Describe(const std::string& text) const override {
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(text));
    return WorkloadInfo{.text = workload.ToText(),
                        .digest = workload.StructuralDigest().ToHex(),
                        .op = workload.name,
                        .flops = FlopCount(workload),
                        .fixed_flops = FixedFlops(workload),
                        .has_fma_peak = HasFmaPeak(workload),
                        .bytes = ir::RooflineOf(workload, {}).bytes};
  }
  absl::StatusOr<bool> CheckSpace(const std::string& workload_text,
                                  const std::string& space) const override {
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(workload_text));
    HONE_RETURN_IF_ERROR(space::CheckSpaceArgument(workload, space));
    if (!space::IsTraceText(space)) return false;
    HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(space));
    return schedule::CheckDecided(file.parsed, "").ok();
  }
  absl::StatusOr<std::unique_ptr<TaskSpaces>> Open(const std::string& workload,
                                                   const std::string& target,
                                                   const std::string& space, double tolerance,
                                                   StopCheck check, Draft draft) const override {
    return CompilerSpaces::Make(workload, target, space, tolerance, std::move(check),
                                std::move(draft), threads_);
  }
  absl::StatusOr<std::unique_ptr<TaskSpaces>> OpenKept(const std::string& space,
                                                       const std::string& target) const override {
    return CompilerSpaces::OfTexts({space}, target, threads_);
  }
  double Distance(const std::string& a, const std::string& b) const override {
    const absl::StatusOr<ir::Workload> left = ir::ParseWorkload(a), right = ir::ParseWorkload(b);
    if (!left.ok() || !right.ok()) return std::numeric_limits<double>::infinity();
    return space::WorkloadDistance(*left, *right);
  }
  absl::StatusOr<std::string> Transplant(const std::string& workload_text,
                                         const std::string& space) const override {
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(workload_text));
    HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(space));
    return schedule::TraceFileText(workload, file.parsed.trace);
  }
  absl::StatusOr<std::string> TraceText(const std::string& space,
                                        const std::vector<int64_t>& decisions) const override {
    // Does not use DesignSpace, which would replay the trace: a look-up must take at most a
    // millisecond.
    HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(space));
    if (static_cast<int>(decisions.size()) != file.parsed.trace.decisions) {
      return absl::InvalidArgumentError(absl::StrCat("the space has ", file.parsed.trace.decisions,
                                                     " decisions, not ", decisions.size()));
    }
    return schedule::TraceFileText(file.workload, file.parsed.trace, decisions);
  }
  absl::StatusOr<FeatureTable> DescribeFeatures(const std::string& trace,
                                                const std::string& target_text,
                                                const std::string& name) const override {
    const absl::StatusOr<const feature::FeatureSet*> found =
        feature::FindFeatureSet(name.empty() ? kDefaultFeatures : name);
    if (!found.ok()) return absl::InvalidArgumentError(found.status().message());
    const feature::FeatureSet& features = **found;
    HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(target_text));
    HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(trace));
    const std::vector<int64_t>& decisions = file.parsed.decisions;
    HONE_RETURN_IF_ERROR(
        schedule::CheckDecided(file.parsed, "features belong to a single candidate"));
    const absl::StatusOr<ir::Program> program =
        schedule::Replay(std::make_shared<const ir::Workload>(std::move(file.workload)),
                         file.parsed.trace, decisions);
    if (!program.ok()) return absl::InvalidArgumentError(program.status().message());
    FeatureTable table{.feature_set = std::string(features.name()),
                       .target = target.Key(),
                       .columns = features.ColumnNames()};
    int rows = 0;
    HONE_RETURN_IF_ERROR(features.ExtractCandidate(*program, {0, decisions, &file.parsed.trace},
                                                   target, table.values, rows));
    return table;
  }
  absl::StatusOr<std::unique_ptr<cost_model::CostModel>> CreateModel(
      const std::string& name, const cost_model::CostModelOptions& options) const override {
    return cost_model::CreateCostModel(name, options);
  }
  std::string default_strategy() const override { return "portfolio"; }
  std::string default_cost_model() const override { return "xgboost"; }
  std::vector<std::string> StrategyNames() const override { return search::SearchStrategyNames(); }
  std::vector<std::string> CostModelNames() const override { return cost_model::CostModelNames(); }
  std::vector<std::string> FeatureSetNames() const override { return feature::FeatureSetNames(); }
  std::vector<cost_model::CostModelInfo> CostModels() const override {
    return cost_model::CostModelInfos();
  }

 private:
  const int threads_;
};

}  // namespace

std::unique_ptr<TaskEnvironment> MakeCompilerEnvironment(int threads) {
  return std::make_unique<CompilerEnvironment>(threads);
}

absl::StatusOr<std::unique_ptr<TaskSpaces>> OpenCompilerSpaces(
    const std::vector<std::string>& spaces, const std::string& target, int threads) {
  return CompilerSpaces::OfTexts(spaces, target, threads);
}

}  // namespace hone::job
