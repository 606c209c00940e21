#include "server/feature/analytic_features.h"

#include "common/base/status_macros.h"
#include "server/feature/analytic_terms.h"
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
                                                            "load_cycles",
                                                            "l2_bytes",
                                                            "l3_bytes",
                                                            "memory_bytes",
                                                            "loop_cycles",
                                                            "gather_cycles",
                                                            "spill_cycles",
                                                            "forks",
                                                            "statements",
                                                            "roofline_cycles",
                                                            "intensity",
                                                            "reuse_l1",
                                                            "reuse_l2",
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
    AnalyticTerms sum, main;
    double roofline = 0, largest = -1, arithmetic = 0, memory = 0;
    for (const Statement& statement : nest.statements()) {
      const AnalyticTerms terms = TermsOf(program, statement, target);
      const double speedup = terms.Speedup(target.cores);
      sum.operations += terms.operations;
      sum.compute_cycles += terms.compute_cycles / speedup;
      sum.latency_cycles += terms.latency_cycles / speedup;
      sum.load_cycles += terms.load_cycles / speedup;
      sum.l2_bytes += terms.l2_bytes / speedup;
      sum.l3_bytes += terms.l3_bytes / speedup;
      sum.memory_bytes += terms.memory_bytes;
      sum.loop_cycles += terms.loop_cycles / speedup;
      sum.gather_cycles += terms.gather_cycles / speedup;
      sum.spill_cycles += terms.spill_cycles / speedup;
      sum.forks += terms.forks;
      arithmetic += terms.operations / terms.lanes / speedup;
      memory += HalideMemoryCost(statement, target) / speedup;
      const double bound = terms.Roofline(target);
      roofline += bound;
      if (bound > largest) {
        largest = bound;
        main = terms;
      }
    }
    const double speedup = main.Speedup(target.cores);
    const double values[kColumns - 8] = {sum.operations,
                                         sum.compute_cycles,
                                         sum.latency_cycles,
                                         sum.load_cycles,
                                         sum.l2_bytes,
                                         sum.l3_bytes,
                                         sum.memory_bytes,
                                         sum.loop_cycles,
                                         sum.gather_cycles,
                                         sum.spill_cycles,
                                         sum.forks,
                                         static_cast<double>(nest.statements().size()),
                                         roofline,
                                         main.operations / main.memory_bytes,
                                         main.operations / main.l2_bytes,
                                         main.operations / main.l3_bytes};
    for (const double value : values) rows_out.push_back(SignedLog2(value));
    rows_out.push_back(static_cast<float>(speedup / target.cores));
    rows_out.push_back(SignedLog2(speedup));
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
