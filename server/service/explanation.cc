#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/record/counters.h"
#include "common/schedule/named_call.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "nlohmann/json.hpp"
#include "server/job/search/draft_work.h"
#include "server/service/services.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/feature/analytic_terms.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/feature/gpu_terms.h"

namespace hone::service {
namespace {

using cost_model::DraftWeights;

constexpr int kMostParts = 3;
struct Term {
  absl::string_view name, meaning;
  int parts;
  std::array<int, kMostParts> part;
};
constexpr Term kTerms[] = {
    {"pipes", "vector instructions", 2, {cost_model::kComputePart, cost_model::kMathPart}},
    {"dependent sums", "additions that wait for earlier ones", 1, {cost_model::kLatencyPart}},
    {"spills", "sums that do not fit into the registers", 1, {cost_model::kSpillPart}},
    {"load ports", "operands loaded from L1", 1, {cost_model::kLoadPart}},
    {"store ports", "results stored to L1", 1, {cost_model::kStorePart}},
    {"loop entries",
     "loading and storing sums, and waiting for them",
     3,
     {cost_model::kBodyPart, cost_model::kMovePart, cost_model::kWaitPart}},
    {"L2",
     "cache lines from L2, and pages outside the TLB",
     2,
     {cost_model::kL2Part, cost_model::kPagePart}},
    {"L3",
     "cache lines from L3 or another core",
     3,
     {cost_model::kL3Part, cost_model::kL3JumpPart, cost_model::kContendedPart}},
    {"memory",
     "cache lines from memory",
     2,
     {cost_model::kMemoryPart, cost_model::kMemorySharedPart}},
    {"forks", "starting and ending parallel loops", 1, {cost_model::kForkPart}},
    {"arithmetic",
     "instructions of the threads",
     2,
     {cost_model::kGpuArithmeticPart, cost_model::kGpuIssuePart}},
    {"register spills",
     "values that do not fit into the registers",
     1,
     {cost_model::kGpuSpillPart}},
    {"shared memory",
     "accesses to shared memory, with bank conflicts",
     2,
     {cost_model::kGpuSharedPart, cost_model::kGpuConflictPart}},
    {"L1", "sectors that warps load and store", 1, {cost_model::kGpuL1Part}},
    {"L2 sectors", "sectors from L2", 1, {cost_model::kGpuL2Part}},
    {"waits",
     "threads that wait for loads, sums and barriers",
     3,
     {cost_model::kGpuLoadWaitPart, cost_model::kGpuSumWaitPart, cost_model::kGpuBarrierPart}},
    {"device memory", "sectors from memory", 1, {cost_model::kGpuMemoryPart}},
    {"launches", "starting kernels", 1, {cost_model::kGpuLaunchPart}},
};
constexpr char kImbalance[] = "imbalance";

// Every part of the cycles belongs to one term. memory_jumps and the last columns of GPUs are none.
constexpr bool CoversEveryPart() {
  std::array<int, cost_model::kDraftColumns> terms{};
  for (const Term& term : kTerms) {
    for (int i = 0; i < term.parts; ++i) ++terms[term.part[i]];
  }
  for (int part = 0; part < cost_model::kGpuEstimate; ++part) {
    if (terms[part] != (part == cost_model::kMemoryJumpPart ? 0 : 1)) return false;
  }
  return true;
}
static_assert(CoversEveryPart());

DraftWeights WeightsOf(const cost_model::CostModel* learned) {
  DraftWeights weights;
  if (learned == nullptr) return weights;
  const nlohmann::json summary = nlohmann::json::parse(learned->Summary(), nullptr, false);
  if (!summary.is_object() || !summary.contains("factors")) return weights;
  for (int part = 0; part < cost_model::kDraftWeights; ++part) {
    const std::string name(cost_model::DraftPartName(part));
    weights.factors[part] = summary["factors"].value(name, 1.0);
  }
  return weights;
}

// The rows of feature set "draft", one per statement.
struct DraftRows {
  std::vector<float> values;
  int count = 0;

  absl::Span<const float> row(int i) const {
    return absl::MakeConstSpan(values).subspan(i * cost_model::kDraftColumns,
                                               cost_model::kDraftColumns);
  }
};

double CyclesOf(const DraftWeights& weights, absl::Span<const float> row) {
  return weights.Cycles(row) + weights.factors[cost_model::kForkPart] * row[cost_model::kForkPart];
}

DraftWeights Without(DraftWeights weights, const Term& term) {
  for (int i = 0; i < term.parts; ++i) weights.factors[term.part[i]] = 0;
  return weights;
}

DraftWeights OnlyWith(DraftWeights weights, const Term& term) {
  for (const Term& other : kTerms) {
    if (&other != &term) weights = Without(weights, other);
  }
  return weights;
}

// Returns which share of each statement's cycles a perfect balance of the cores or of a GPU's
// units would save.
std::vector<double> ImbalancesOf(const feature::Nest& nest, const target::Target& target) {
  std::vector<double> saved(nest.statements().size(), 0);
  if (target.kind == target::Kind::kCpu) {
    const feature::AnalyticMachine machine = feature::AnalyticMachine::Of(target);
    const feature::AnalyticEstimate estimate = feature::EstimateCost(nest, machine);
    for (size_t i = 0; i < saved.size(); ++i)
      saved[i] = 1 - 1 / std::max(1.0, estimate.statements[i].share * machine.cores);
  } else {
    const feature::GpuMachine machine = feature::GpuMachine::Of(target);
    for (const feature::GpuTerms& launch : feature::EstimateGpuCost(nest, machine).launches)
      saved[launch.statement] = 1 - launch.waves / std::max(1.0, std::ceil(launch.waves));
  }
  return saved;
}

double CycleNs(const target::Target& target) {
  for (const feature::MachineConstant& constant : feature::MachineConstants(target)) {
    if (constant.cycles > 0 && constant.ns > 0) return constant.ns / constant.cycles;
  }
  return 0;
}

// What was measured of a candidate, by the name of the policy.
struct Measurements {
  struct One {
    int64_t record = 0;
    double latency_ns = 0;
  };
  std::map<std::string, One> by_policy;  // the newest
  bool failed = false;
};

// Returns the measurement to compare with those of the explained schedule.
v1::TriedSchedule Compare(const Measurements& tried, const Measurements& explained, double own_ns) {
  v1::TriedSchedule schedule;
  for (const auto& [policy, one] : tried.by_policy) {  // "confirm" before "screen"
    const auto same = explained.by_policy.find(policy);
    const bool is_same = same != explained.by_policy.end();
    if (schedule.record() != 0 && !is_same) continue;
    schedule.set_record(one.record);
    schedule.set_latency_ns(one.latency_ns);
    schedule.set_ratio(one.latency_ns / (is_same ? same->second.latency_ns : own_ns));
    if (is_same) break;
  }
  return schedule;
}

using MeasuredCandidates =
    std::map<std::pair<std::string, std::vector<int64_t>>, Measurements>;  // by space and decisions

// Reads the measurements that can be compared with a record.
absl::StatusOr<MeasuredCandidates> ReadMeasured(store::Store& store,
                                                const record::Record& explained) {
  MeasuredCandidates candidates;
  const auto add = [&](const record::Record& record) {
    if (record.tolerance != explained.tolerance) return;
    Measurements& seen = candidates[{record.candidate.space_digest, record.candidate.decisions}];
    if (record.result.outcome != record::Outcome::kOk) {
      seen.failed = true;
      return;
    }
    const double latency = record::SteadyLatencyNs(record.result);
    if (record.result.inputs != explained.result.inputs || !(latency > 0)) return;
    seen.by_policy[record.policy.name] = {record.id, latency};
  };
  HONE_RETURN_IF_ERROR(store.ForEachRecord({.workload_digest = explained.workload_digest,
                                            .target = explained.target,
                                            .quarantine = store::QuarantineFilter::kNone},
                                           add));
  return candidates;
}

absl::Status AddTried(store::Store& store, const record::Record& explained,
                      absl::Span<const schedule::NamedCall> calls, v1::Explanation& explanation) {
  HONE_ASSIGN_OR_RETURN(const MeasuredCandidates candidates, ReadMeasured(store, explained));
  const std::pair own(explained.candidate.space_digest, explained.candidate.decisions);
  const double own_ns = record::SteadyLatencyNs(explained.result);
  const auto found = candidates.find(own);
  if (found == candidates.end() || !(own_ns > 0)) return absl::OkStatus();
  int64_t same_space = 0, other_spaces = 0, near_failed = 0;
  std::vector<v1::TriedSchedule> near;
  for (const auto& [candidate, seen] : candidates) {
    if (candidate == own) continue;
    const bool ran = !seen.by_policy.empty();
    v1::TriedSchedule schedule = Compare(seen, found->second, own_ns);
    if (candidate.first != own.first) {
      if (!ran) continue;
      ++other_spaces;
      if (!explanation.has_best_of_others() ||
          schedule.ratio() < explanation.best_of_others().ratio()) {
        *explanation.mutable_best_of_others() = std::move(schedule);
      }
      continue;
    }
    if (ran) ++same_space;
    if (candidate.second.size() != own.second.size()) continue;  // damaged
    const auto changes = schedule::ChangedDecisions(calls, candidate.second, kMostChanges);
    if (changes.size() > kMostChanges) continue;
    if (!ran) {
      near_failed += seen.failed ? 1 : 0;
      continue;
    }
    for (const schedule::ChangedDecision& changed : changes) {
      v1::ChangedDecision& row = *schedule.add_changes();
      row.set_name(changed.text);
      row.mutable_before()->Add(changed.before.begin(), changed.before.end());
      row.mutable_after()->Add(changed.after.begin(), changed.after.end());
    }
    near.push_back(std::move(schedule));
  }
  explanation.set_same_space(same_space);
  explanation.set_other_spaces(other_spaces);
  explanation.set_near_count(static_cast<int64_t>(near.size()));
  explanation.set_near_failed(near_failed);
  std::ranges::stable_sort(near, {}, &v1::TriedSchedule::ratio);
  if (near.size() > kMostNear) near.resize(kMostNear);
  explanation.mutable_near()->Add(near.begin(), near.end());
  return absl::OkStatus();
}

struct CounterMeaning {
  absl::string_view name, meaning;
};
constexpr CounterMeaning kCounterMeanings[] = {
    {record::kWallNs, "nanoseconds that the run took while it was counted"},
    {record::kProcessorNs, "nanoseconds of processor time, of all threads"},
    {record::kPageFaults, "pages that the system had to provide"},
    {record::kContextSwitches, "threads that lost their cores or slept"},
    {record::kCycles, "clock cycles of all threads"},
    {record::kInstructions, "instructions of all threads"},
    {record::kBranchMisses, "branches that the processor predicted wrongly"},
    {record::kL1dMisses, "loads that missed L1"},
    {record::kL2Misses, "requests that missed L2"},
    {record::kLlcMisses, "loads that missed the last level of caches"},
    {record::kFlops, "floating-point operations; a multiply-add is two"},
};

// Adds what follows from the counters: a counter times a factor over another counter, or over a
// known number.
class MeasuredRatios {
 public:
  explicit MeasuredRatios(v1::Explanation& explanation) : explanation_(explanation) {}

  void Add(const char* name, const char* meaning, double factor, absl::string_view above,
           absl::string_view below) {
    Add(name, meaning, factor, above, ValueOf(below));
  }
  void Add(const char* name, const char* meaning, double factor, absl::string_view above,
           double below, double estimate = 0) {
    v1::MeasuredValue divisor;
    divisor.set_value(below);
    v1::MeasuredValue& ratio = Add(name, meaning, factor, above, divisor);
    if (estimate > 0) ratio.set_estimate(estimate);
  }

 private:
  v1::MeasuredValue& Add(const char* name, const char* meaning, double factor,
                         absl::string_view above, const v1::MeasuredValue& divisor) {
    const v1::MeasuredValue counter = ValueOf(above);
    v1::MeasuredValue& ratio = *explanation_.add_ratios();
    ratio.set_name(name);
    ratio.set_meaning(meaning);
    ratio.set_missing(!counter.missing().empty()   ? counter.missing()
                      : !divisor.missing().empty() ? divisor.missing()
                      : divisor.value() > 0        ? ""
                                                   : "there is nothing to compare with");
    if (ratio.missing().empty()) ratio.set_value(factor * counter.value() / divisor.value());
    return ratio;
  }
  v1::MeasuredValue ValueOf(absl::string_view name) const {
    for (const v1::MeasuredValue& counter : explanation_.counters()) {
      if (counter.name() == name) return counter;
    }
    v1::MeasuredValue none;
    none.set_missing("Hone knows no event for it on this kind of processor");
    return none;
  }

  v1::Explanation& explanation_;
};

std::string WhyNotCounted(const record::Record& record, target::Kind kind) {
  if (kind != target::Kind::kCpu) return "kernels of GPUs are not counted";
  if (record.result.outcome != record::Outcome::kOk) return "the kernel failed";
  if (record.policy.name != "confirm") {
    return "only finalists are counted, while they are confirmed";
  }
  if (record.policy.cache == "flushed") return "runs with emptied caches are not counted";
  return "its worker did not count; hone revalidate measures it again";
}

void AddMeasured(const Explained& what, target::Kind kind, const EstimatedTraffic& estimated,
                 v1::Explanation& explanation) {
  const record::Record& record = *what.record;
  for (const record::Counter& counter : record::ParseCounters(record.result.counters)) {
    const auto* const known =
        std::ranges::find(kCounterMeanings, counter.name, &CounterMeaning::name);
    if (known == std::end(kCounterMeanings)) continue;
    v1::MeasuredValue& row = *explanation.add_counters();
    row.set_name(counter.name);
    row.set_meaning(std::string(known->meaning));
    row.set_value(counter.value);
    row.set_missing(counter.missing);
  }
  if (explanation.counters().empty()) {
    explanation.set_not_counted(WhyNotCounted(record, kind));
    return;
  }
  using record::kBranchMisses, record::kCycles, record::kFlops, record::kInstructions,
      record::kL1dMisses, record::kL2Misses, record::kLlcMisses, record::kProcessorNs,
      record::kWallNs;
  MeasuredRatios ratios(explanation);
  const double flops = explanation.roofline().flops();
  if (what.speed.peak_gflops > 0 && what.speed.gflops > 0) {
    v1::MeasuredValue& share = *explanation.add_ratios();
    share.set_name("share of the peak");
    share.set_meaning("useful operations over those of the measured peak");
    share.set_value(what.speed.gflops / what.speed.peak_gflops);
  }
  ratios.Add("busy cores", "processor time over time; threads that wait actively are busy", 1,
             kProcessorNs, kWallNs);
  ratios.Add("clock, GHz", "cycles over processor time", 1, kCycles, kProcessorNs);
  ratios.Add("instructions per cycle", "of each core", 1, kInstructions, kCycles);
  ratios.Add("instructions per multiply-add", "vector instructions do several at once", 2,
             kInstructions, flops);
  ratios.Add("operations per useful one", "above 1: padded and repeated work", 1, kFlops, flops);
  constexpr char kPerThousand[] = "per 1000 instructions";
  ratios.Add("L1 misses", kPerThousand, 1000, kL1dMisses, kInstructions);
  ratios.Add("L2 misses", kPerThousand, 1000, kL2Misses, kInstructions);
  ratios.Add("last-level misses", kPerThousand, 1000, kLlcMisses, kInstructions);
  ratios.Add("branch misses", kPerThousand, 1000, kBranchMisses, kInstructions);
  ratios.Add("bytes from beyond L2", "lines of L2 misses", feature::kLineBytes, kL2Misses, 1.0,
             estimated.l2_bytes);
  ratios.Add("bytes from memory", "lines of last-level misses", feature::kLineBytes, kLlcMisses,
             1.0, estimated.l3_bytes);
}

// Returns the lines of a statement that a level of caches gets from the next one.
double LinesOf(const feature::AnalyticTerms& terms, const feature::AnalyticMachine& machine,
               int level) {
  const double contended = level == 1 ? terms.contended_cycles : 0;
  const double jumps = terms.jump_cycles[level];
  return (terms.traffic_cycles[level] - jumps - contended) / machine.line_cycles[level] +
         jumps / (machine.line_cycles[level] * machine.unforeseen) +
         contended / machine.contended_line_cycles;
}

}  // namespace

absl::StatusOr<EstimatedTraffic> EstimateOf(const ir::Program& program, const target::Target& given,
                                            const cost_model::CostModel* learned,
                                            v1::Explanation& explanation) {
  target::Target target = given;
  explanation.set_learned(learned != nullptr);
  // A learned draft has factors for the constants of the kind of machine.
  if (learned != nullptr) {
    target.calibration = {};
  } else {
    explanation.set_cycle_ns(CycleNs(target));
  }
  HONE_ASSIGN_OR_RETURN(const feature::FeatureSet* features, feature::FindFeatureSet("draft"));
  DraftRows rows;
  HONE_RETURN_IF_ERROR(features->Extract(program, target, rows.values, rows.count));
  feature::Nest nest;
  HONE_RETURN_IF_ERROR(nest.Analyze(program));
  const DraftWeights weights = WeightsOf(learned);
  const std::vector<double> imbalances = ImbalancesOf(nest, target);
  EstimatedTraffic traffic;
  if (target.kind == target::Kind::kCpu) {
    const feature::AnalyticMachine machine = feature::AnalyticMachine::Of(target);
    for (const feature::AnalyticTerms& terms : feature::EstimateCost(nest, machine).statements) {
      traffic.l2_bytes += feature::kLineBytes * LinesOf(terms, machine, 1);
      traffic.l3_bytes += feature::kLineBytes * LinesOf(terms, machine, 2);
    }
  }
  double cycles = 0, imbalance = 0;
  std::vector<double> alone(std::size(kTerms), 0), without(std::size(kTerms), 0);  // by term
  for (int i = 0; i < rows.count; ++i) {
    const absl::Span<const float> row = rows.row(i);
    v1::StatementEstimate& statement = *explanation.add_statements();
    statement.set_name(nest.statements()[i].block->name);
    statement.set_cycles(CyclesOf(weights, row));
    cycles += statement.cycles();
    const double unbalanced = imbalances[i] * weights.Cycles(row);
    imbalance += unbalanced;
    double most = unbalanced;
    if (unbalanced > 0) statement.set_limit(kImbalance);
    for (size_t t = 0; t < std::size(kTerms); ++t) {
      const double rest = CyclesOf(Without(weights, kTerms[t]), row);
      without[t] += rest;
      alone[t] += CyclesOf(OnlyWith(weights, kTerms[t]), row);
      if (statement.cycles() - rest <= most) continue;
      most = statement.cycles() - rest;
      statement.set_limit(std::string(kTerms[t].name));
    }
  }
  explanation.set_estimate_cycles(cycles);
  std::vector<v1::EstimateTerm> terms;
  const auto add = [&](absl::string_view name, absl::string_view meaning, double cost,
                       double saved) {
    if (!(cost > 0)) return;
    v1::EstimateTerm& term = terms.emplace_back();
    term.set_name(std::string(name));
    term.set_meaning(std::string(meaning));
    term.set_cycles(cost);
    term.set_gain(saved / std::max(cycles, 1.0));
  };
  for (size_t t = 0; t < std::size(kTerms); ++t) {
    add(kTerms[t].name, kTerms[t].meaning, alone[t], cycles - without[t]);
  }
  add(kImbalance,
      target.kind == target::Kind::kCpu ? "cores that wait for the busiest one"
                                        : "compute units without work at the end",
      imbalance, imbalance);
  std::ranges::stable_sort(terms, std::ranges::greater(), &v1::EstimateTerm::gain);
  explanation.mutable_terms()->Add(terms.begin(), terms.end());
  return traffic;
}

absl::Status Explain(store::Store& store, const job::TaskEnvironment& environment,
                     const Explained& what, v1::Explanation& explanation) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(what.target));
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(what.trace));
  const schedule::ParsedTrace& parsed = file.parsed;
  HONE_RETURN_IF_ERROR(schedule::CheckDecided(parsed, "an explanation is of a single schedule"));
  const auto workload = std::make_shared<const ir::Workload>(std::move(file.workload));
  const absl::StatusOr<ir::Program> program =
      schedule::Replay(workload, parsed.trace, parsed.decisions);
  if (!program.ok()) return absl::InvalidArgumentError(program.status().message());
  explanation.set_target(what.target);
  explanation.mutable_best()->set_workload(workload->ToText());
  const ir::Roofline roofline = ir::RooflineOf(*workload, what.speed);
  explanation.mutable_roofline()->set_flops(roofline.flops);
  explanation.mutable_roofline()->set_bytes(roofline.bytes);
  explanation.mutable_roofline()->set_gflops(roofline.gflops);
  explanation.mutable_roofline()->set_bound(ir::BoundOf(roofline));
  HONE_ASSIGN_OR_RETURN(const int64_t newest, job::NewestDraft(store, target.Key()));
  const auto learned = job::LoadDraft(&store, environment, newest, what.target);
  HONE_ASSIGN_OR_RETURN(const EstimatedTraffic estimated,
                        EstimateOf(*program, target, learned.get(), explanation));
  if (!what.record.has_value()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::vector<schedule::NamedCall> calls,
                        schedule::NamedCallsOf(workload, parsed.trace, parsed.decisions));
  HONE_RETURN_IF_ERROR(AddTried(store, *what.record, calls, explanation));
  AddMeasured(what, target.kind, estimated, explanation);
  return absl::OkStatus();
}

}  // namespace hone::service
