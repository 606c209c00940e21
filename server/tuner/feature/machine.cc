#include "server/tuner/feature/machine.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/target/capabilities.h"
#include "common/target/host.h"

namespace hone::feature {
namespace {

// Parameters of Arm cores, for vectors as wide as in the presets with this core (from Arm's
// software optimization guides; for Apple's core, from public measurements).
struct ArmCore {
  absl::string_view cpu;                         // LLVM's name
  double fma_pipes, fma_latency, loads, stores;  // see AnalyticMachine
};
constexpr ArmCore kArmCores[] = {
    {"cortex-a7", 0.25, 8, 0.5, 0.5}, {"cortex-a53", 1, 8, 0.5, 0.5}, {"cortex-a55", 1, 4, 0.5, 1},
    {"cortex-a57", 1, 7, 1, 1},       {"cortex-a72", 1, 7, 1, 1},     {"cortex-a73", 1, 7, 1, 1},
    {"cortex-x1", 4, 4, 2, 2},        {"neoverse-v1", 2, 4, 2, 1},    {"neoverse-v2", 4, 4, 3, 2},
    {"apple-m1", 4, 4, 3, 2},
};

// Replaces constants by what was measured. The unit of the estimate is the cycle in which a
// multiply-add has the preset latency.
void Calibrate(const target::Calibration& measured, AnalyticMachine& machine) {
  if (measured.fma_latency <= 0) return;
  const double cycle_ns = measured.fma_latency / machine.fma_latency;
  const auto cycles = [&](double ns, double& constant) {
    if (ns > 0) constant = ns / cycle_ns;
  };
  const auto rate = [&](double ns, double& constant) {
    if (ns > 0) constant = cycle_ns / ns;
  };
  rate(measured.fma, machine.fma_pipes);
  rate(measured.load, machine.loads);
  rate(measured.store, machine.stores);
  cycles(measured.l2_line, machine.line_cycles[0]);
  cycles(measured.l3_line, machine.line_cycles[1]);
  cycles(measured.memory_line, machine.line_cycles[2]);
  cycles(measured.memory_shared_line, machine.memory_shared_line_cycles);
  cycles(measured.fork, machine.fork_cycles);
}

// Returns the constants of a kind of CPU.
AnalyticMachine PresetOf(const target::Target& target) {
  AnalyticMachine machine{.l1_bytes = target.l1_bytes,
                          .l2_bytes = target.l2_bytes,
                          .l3_bytes = target::ReachableL3Bytes(target),
                          .vector_bits = target.vector_bits,
                          .registers = target.vector_registers,
                          .cores = target.cores};
  machine.l1_ways =
      std::max(1.0, static_cast<double>(target.l1_bytes) / static_cast<double>(machine.l1_period));
  if (const auto core = std::ranges::find(kArmCores, target.cpu, &ArmCore::cpu);
      core != std::end(kArmCores)) {
    machine.fma_pipes = core->fma_pipes;
    machine.fma_latency = core->fma_latency;
    machine.loads = core->loads;
    machine.stores = core->stores;
    return machine;
  }
  const auto is_one_of = [&](std::initializer_list<absl::string_view> cpus) {
    return std::ranges::find(cpus, target.cpu) != cpus.end();
  };
  const bool zen = absl::StartsWith(target.cpu, "znver");
  if (target.arch == "x86_64" && target.vector_bits <= 256 &&
      (!zen || is_one_of({"znver1", "znver2"})))
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

}  // namespace

AnalyticMachine AnalyticMachine::Of(const target::Target& target) {
  AnalyticMachine machine = PresetOf(target);
  Calibrate(target.calibration, machine);
  return machine;
}

GpuMachine GpuMachine::Of(const target::Target& target) {
  const target::GpuLimits& gpu = target.gpu;
  GpuMachine machine{.units = static_cast<double>(std::max(1, target.cores))};
  // If the device does not report a warp size, assume 8, as for the vector lanes of a CPU that runs
  // OpenCL.
  machine.warp = gpu.sub_group > 1 ? gpu.sub_group : 8;
  machine.shuffle_width = target::ShuffleWidth(target);
  machine.fma_lanes = 2 * machine.warp;
  machine.banks = machine.warp;
  machine.shared_memory = gpu.has_shared_memory;
  machine.schedulers = machine.warp >= 32 ? 4 : machine.warp >= 16 ? 2 : 1;
  // If shared memory is part of the caches, they are as fast as shared memory.
  machine.l1_bytes_per_cycle = (gpu.has_shared_memory ? 2 : 4) * machine.warp;
  machine.l2_bytes_per_cycle = machine.warp;
  machine.l1_bytes = static_cast<double>(target.l1_bytes);
  machine.l2_bytes = static_cast<double>(target.l2_bytes);
  machine.unit_threads = std::max(gpu.unit_threads, gpu.max_threads);
  machine.unit_shared_bytes =
      static_cast<double>(std::max(gpu.unit_shared_bytes, gpu.shared_bytes));
  if (gpu.registers > 0) machine.registers = gpu.registers;
  machine.unit_registers =
      gpu.unit_registers > 0 ? static_cast<double>(gpu.unit_registers) : machine.unit_threads * 32;
  return machine;
}

}  // namespace hone::feature
