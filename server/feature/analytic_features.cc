#include "server/feature/analytic_features.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "server/feature/analytic_terms.h"
#include "server/feature/halide_cost.h"
#include "server/feature/logarithm.h"
#include "server/feature/nest.h"

namespace hone::feature {
namespace {

constexpr int kColumns = 24;

class AnalyticFeatureSet final : public FeatureSet {
 public:
  absl::string_view name() const override { return "analytic"; }
  int Columns() const override { return kColumns; }
  const std::vector<std::string>& ColumnNames() const override {
    static const auto* names = new std::vector<std::string>{"operations",
                                                            "compute_cycles",
                                                            "latency_cycles",
                                                            "port_cycles",
                                                            "l2_cycles",
                                                            "l3_cycles",
                                                            "memory_cycles",
                                                            "bodies",
                                                            "entry_cycles",
                                                            "spill_cycles",
                                                            "forks",
                                                            "statements",
                                                            "draft_cycles",
                                                            "l2_intensity",
                                                            "l3_intensity",
                                                            "memory_intensity",
                                                            "wave",
                                                            "speedup",
                                                            "lanes",
                                                            "fill",
                                                            "accumulators",
                                                            "register_reuse",
                                                            "formula_arithmetic",
                                                            "formula_memory"};
    return *names;
  }

  absl::Status Extract(const ir::Program& program, const target::Target& target,
                       std::vector<float>& rows_out, int& row_count) const override {
    thread_local Nest nest;  // keeps its memory from candidate to candidate
    HONE_RETURN_IF_ERROR(AnalyzeBlocks(program, nest));
    const AnalyticEstimate estimate = EstimateCost(nest, AnalyticMachine::Of(target));
    AnalyticTerms sum, main;
    double arithmetic = 0, memory = 0;
    sum.bodies = 0;
    for (size_t i = 0; i < estimate.statements.size(); ++i) {
      const AnalyticTerms& terms = estimate.statements[i];
      sum.operations += terms.operations;
      sum.compute_cycles += terms.compute_cycles * terms.share;
      sum.latency_cycles += terms.latency_cycles * terms.share;
      sum.port_cycles += terms.port_cycles * terms.share;
      for (int level = 0; level < kCacheLevels; ++level)
        sum.traffic_cycles[level] += terms.traffic_cycles[level] * terms.share;
      sum.bodies += terms.bodies * terms.share;
      sum.entry_cycles += terms.entry_cycles * terms.share;
      sum.spill_cycles += terms.spill_cycles * terms.share;
      arithmetic += terms.operations / terms.lanes * terms.share;
      memory += HalideMemoryCost(nest.statements()[i], target) * terms.share;
      if (i == 0 || terms.cycles > main.cycles) main = terms;
    }
    const double values[] = {sum.operations,        sum.compute_cycles,
                             sum.latency_cycles,    sum.port_cycles,
                             sum.traffic_cycles[0], sum.traffic_cycles[1],
                             sum.traffic_cycles[2], sum.bodies,
                             sum.entry_cycles,      sum.spill_cycles,
                             estimate.forks,        static_cast<double>(estimate.statements.size()),
                             estimate.cycles};
    for (const double value : values) rows_out.push_back(SignedLog2(value));
    for (const double traffic : main.traffic_cycles)
      rows_out.push_back(SignedLog2(main.operations / std::max(traffic, 1.0)));
    rows_out.push_back(static_cast<float>(1 / main.share / target.cores));
    rows_out.push_back(SignedLog2(1 / main.share));
    rows_out.push_back(SignedLog2(main.lanes));
    rows_out.push_back(static_cast<float>(main.fill));
    for (const double value : {main.accumulators, main.register_reuse, arithmetic, memory})
      rows_out.push_back(SignedLog2(value));
    row_count = 1;
    return absl::OkStatus();
  }
};

}  // namespace

const FeatureSet& AnalyticFeatures() {
  static const auto* set = new AnalyticFeatureSet;
  return *set;
}

}  // namespace hone::feature
