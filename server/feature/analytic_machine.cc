#include "server/feature/analytic_machine.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/target/caches.h"

namespace hone::feature {

AnalyticMachine AnalyticMachine::Of(const target::Target& target) {
  AnalyticMachine machine{.l1_bytes = target.l1_bytes,
                          .l2_bytes = target.l2_bytes,
                          .l3_bytes = target::ReachableL3Bytes(target),
                          .vector_bits = target.vector_bits,
                          .registers = target.vector_registers,
                          .cores = target.cores};
  machine.l1_ways =
      std::max(1.0, static_cast<double>(target.l1_bytes) / static_cast<double>(machine.l1_period));
  const auto is_one_of = [&](std::initializer_list<absl::string_view> cpus) {
    return std::ranges::find(cpus, target.cpu) != cpus.end();
  };
  const bool zen = absl::StartsWith(target.cpu, "znver");
  if (target.vector_bits <= 256 && (!zen || is_one_of({"znver1", "znver2"})))
    machine.fma_latency = 5;
  // Zen 1 and Zen 4 process their widest vectors as two halves, in the pipes and in L1 (AMD's
  // optimization guides of families 17h and 19h; Fog, microarchitecture.pdf and
  // instruction_tables.pdf).
  if ((target.vector_bits == 256 && is_one_of({"znver1"})) ||
      (target.vector_bits >= 512 && is_one_of({"znver4"}))) {
    machine.fma_pipes = 1;
    machine.loads = 1;
    machine.stores = 0.5;
  }
  if (is_one_of({"znver1", "znver2", "znver3", "znver4"})) machine.l2_ways = 8;
  return machine;
}

}  // namespace hone::feature
