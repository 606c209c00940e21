#include "common/target/nvidia_gpus.h"

#include "absl/strings/str_cat.h"

namespace hone::target {
namespace {

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;

constexpr NvidiaGpu kGpus[] = {
    {"nvidia/t4", "t4", 7, 5, 40, 4 * kMiB},         {"nvidia/a10", "a10", 8, 6, 72, 6 * kMiB},
    {"nvidia/a100", "a100", 8, 0, 108, 40 * kMiB},   {"nvidia/l4", "l4", 8, 9, 58, 48 * kMiB},
    {"nvidia/h100", "h100", 9, 0, 132, 50 * kMiB},   {"nvidia/h200", "h200", 9, 0, 132, 50 * kMiB},
    {"nvidia/b200", "b200", 10, 0, 148, 126 * kMiB},
};

// Resources of a streaming multiprocessor by compute capability. A line applies from its capability
// up to that of the next line. From 8.0 on, a block cannot use the last KiB of shared memory.
struct Unit {
  int capability;  // 10 · major + minor
  int threads;
  int64_t shared_bytes;
  int64_t l1_bytes;  // with the shared memory, which is a part of it
};
constexpr Unit kUnits[] = {
    {50, 2048, 96 * kKiB, 24 * kKiB},    {70, 2048, 96 * kKiB, 128 * kKiB},
    {75, 1024, 64 * kKiB, 96 * kKiB},    {80, 2048, 164 * kKiB, 192 * kKiB},
    {86, 1536, 100 * kKiB, 128 * kKiB},  {87, 1536, 164 * kKiB, 192 * kKiB},
    {89, 1536, 100 * kKiB, 128 * kKiB},  {90, 2048, 228 * kKiB, 256 * kKiB},
    {120, 1536, 100 * kKiB, 128 * kKiB},
};

Unit UnitOf(int capability) {
  Unit unit = kUnits[0];
  for (const Unit& line : kUnits) {
    if (line.capability <= capability) unit = line;
  }
  return unit;
}

}  // namespace

absl::Span<const NvidiaGpu> NvidiaGpus() { return kGpus; }

Target CudaTarget(int major, int minor, int units, int64_t l2_bytes, absl::string_view model) {
  const int capability = 10 * major + minor;
  const Unit unit = UnitOf(capability);
  // Before 7.0, a block had at most 48 KiB.
  const int64_t block_shared = capability < 70   ? 48 * kKiB
                               : capability < 80 ? unit.shared_bytes
                                                 : unit.shared_bytes - kKiB;
  Target target{.kind = Kind::kCuda,
                .arch = "nvptx64",
                .triple = "nvptx64-nvidia-cuda",
                .cpu = absl::StrCat("sm_", major, minor, major >= 9 ? "a" : ""),
                .cores = units,
                .vector_bits = 128,
                .vector_registers = 64,
                .l1_bytes = unit.l1_bytes,
                .l2_bytes = l2_bytes,
                .cache_line_bytes = 128};
  if (!model.empty()) target.features = {std::string(model)};
  target.gpu = {.max_threads = 1024,
                .shared_bytes = block_shared,
                .sub_group = 32,
                .registers = 255,
                .unit_threads = unit.threads,
                .unit_shared_bytes = unit.shared_bytes,
                .unit_registers = 64 * kKiB,
                .has_shared_memory = true};
  return target;
}

Target CudaTarget(const NvidiaGpu& gpu) {
  return CudaTarget(gpu.major, gpu.minor, gpu.units, gpu.l2_bytes, gpu.word);
}

}  // namespace hone::target
