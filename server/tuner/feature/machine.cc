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

// The place of a measured constant in the machine. A rate is a number per cycle, not of cycles.
struct Place {
  double target::Calibration::* measured;
  double& (*of)(AnalyticMachine&);
  bool is_rate = false;
  bool is_of_core = true;  // its cycles depend on the core only, not on the clock or on memory
};
using target::Calibration;
using Machine = AnalyticMachine;
constexpr Place kPlaces[] = {
    {&Calibration::fma, [](Machine& m) -> double& { return m.fma_pipes; }, true},
    {&Calibration::fma_latency, [](Machine& m) -> double& { return m.fma_latency; }},
    {&Calibration::load, [](Machine& m) -> double& { return m.loads; }, true},
    {&Calibration::store, [](Machine& m) -> double& { return m.stores; }, true},
    {&Calibration::l2_line, [](Machine& m) -> double& { return m.line_cycles[0]; }},
    {&Calibration::l3_line, [](Machine& m) -> double& { return m.line_cycles[1]; }, false, false},
    {&Calibration::memory_line, [](Machine& m) -> double& { return m.line_cycles[2]; }, false,
     false},
    {&Calibration::memory_shared_line,
     [](Machine& m) -> double& { return m.memory_shared_line_cycles; }, false, false},
    {&Calibration::fork, [](Machine& m) -> double& { return m.fork_cycles; }, false, false},
};

// The unit of the estimate is the cycle in which a multiply-add has the preset latency; 0: it was
// not measured.
double CycleNs(const Calibration& measured, const Machine& preset) {
  return measured.fma_latency / preset.fma_latency;
}

// Replaces constants by what was measured.
void Calibrate(const Calibration& measured, Machine& machine) {
  const double cycle_ns = CycleNs(measured, machine);
  if (cycle_ns <= 0) return;
  for (const Place& place : kPlaces) {
    const double ns = measured.*place.measured;
    if (ns <= 0 || place.measured == &Calibration::fma_latency) continue;
    place.of(machine) = place.is_rate ? cycle_ns / ns : ns / cycle_ns;
  }
}

// The same for a GPU. The unit of the estimate is the cycle in which the lanes of a compute unit
// each start a multiply-add.
void Calibrate(const target::Calibration& measured, GpuMachine& machine) {
  if (measured.fma <= 0) return;
  const double cycle_ns = measured.fma * machine.fma_lanes / 32;
  if (measured.memory_shared_line > 0) {
    machine.memory_bytes_per_cycle =
        kLineBytes / measured.memory_shared_line * cycle_ns / machine.units;
  }
  if (measured.launch > 0) machine.launch_cycles = measured.launch / cycle_ns;
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

std::vector<MachineConstant> MachineConstants(const target::Target& target) {
  if (target.kind != target::Kind::kCpu) return {};
  AnalyticMachine preset = PresetOf(target);
  AnalyticMachine machine = AnalyticMachine::Of(target);
  const double cycle_ns = CycleNs(target.calibration, preset);
  std::vector<MachineConstant> constants;
  for (const target::CalibrationField& field : target::CalibrationFields()) {
    const auto* const found = std::ranges::find(kPlaces, field.value, &Place::measured);
    if (found == std::end(kPlaces)) continue;  // of GPUs only
    const Place& place = *found;
    const auto cycles = [&](AnalyticMachine& of) {
      return place.is_rate ? 1 / place.of(of) : place.of(of);
    };
    MachineConstant& constant = constants.emplace_back(
        MachineConstant{.name = field.name,
                        .meaning = field.meaning,
                        .cycles = cycles(machine),
                        .preset_cycles = cycles(preset),
                        .measured = target.calibration.*field.value > 0 && cycle_ns > 0});
    constant.ns = constant.measured ? target.calibration.*field.value : constant.cycles * cycle_ns;
    const double factor =
        place.is_of_core ? MachineConstant::kUsualFactor : MachineConstant::kUsualMemoryFactor;
    const double ratio = constant.cycles / constant.preset_cycles;
    constant.unusual = constant.measured && (ratio > factor || ratio < 1 / factor);
  }
  return constants;
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
  Calibrate(target.calibration, machine);
  return machine;
}

}  // namespace hone::feature
