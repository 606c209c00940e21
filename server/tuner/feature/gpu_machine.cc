#include "server/tuner/feature/gpu_machine.h"

#include <algorithm>

#include "common/target/shuffles.h"

namespace hone::feature {

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
