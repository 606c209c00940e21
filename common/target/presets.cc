#include "common/target/presets.h"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/target/device_name.h"
#include "common/target/target.h"

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

struct Caches {
  int64_t l1, l2, l3;  // in KiB; L3 in total
  int line = 64;
};

ArmPreset AArch64(absl::string_view name, std::vector<std::string> features, int cores,
                  const Caches& caches, int vector_bits = 128) {
  return {name, Target{.arch = "aarch64",
                       .triple = "aarch64-unknown-linux-gnu",
                       .cpu = std::string(name.substr(name.find('/') + 1)),
                       .features = std::move(features),
                       .cores = cores,
                       .vector_bits = vector_bits,
                       .vector_registers = 32,
                       .l1_bytes = caches.l1 << 10,
                       .l2_bytes = caches.l2 << 10,
                       .l3_bytes = caches.l3 << 10,
                       .cache_line_bytes = caches.line}};
}

ArmPreset Armv7(absl::string_view name, int cores, const Caches& caches) {
  ArmPreset preset = AArch64(name, {"neon", "vfp4"}, cores, caches);
  preset.target.arch = "armv7";
  preset.target.triple = "armv7-unknown-linux-gnueabihf";
  preset.target.vector_registers = 16;
  return preset;
}

Target PresetAvx2() {
  return Target{.cpu = "x86-64-v3",
                .features = {"avx", "avx2", "f16c", "fma"},
                .cores = 4,
                .vector_bits = 256,
                .vector_registers = 16,
                .l1_bytes = 32 << 10,
                .l2_bytes = 256 << 10,
                .l3_bytes = 8 << 20};
}

// A server CPU with AMX. All of its features are those that DetectHost reports.
Target IntelServer(absl::string_view cpu, int cores, int64_t l3_bytes) {
  return Target{.cpu = std::string(cpu),
                .features = {"amx-bf16", "amx-int8", "avx", "avx2", "avx512bf16", "avx512bw",
                             "avx512cd", "avx512dq", "avx512f", "avx512fp16", "avx512vbmi",
                             "avx512vl", "avx512vnni", "avxvnni", "f16c", "fma"},
                .cores = cores,
                .vector_bits = 512,
                .vector_registers = 32,
                .l1_bytes = 48 * kKiB,
                .l2_bytes = 2 * kMiB,
                .l3_bytes = l3_bytes};
}
// Xeon Platinum 8480+, Xeon 6767P
Target PresetSapphireRapids() { return IntelServer("sapphirerapids", 56, 105 * kMiB); }
Target PresetGraniteRapids() { return IntelServer("graniterapids", 64, 336 * kMiB); }

Target PresetAvx512() {
  return Target{.cpu = "skylake-avx512",
                .features = {"avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f",
                             "avx512vl", "f16c", "fma"},
                .cores = 4,
                .vector_bits = 512,
                .vector_registers = 32,
                .l1_bytes = 32 << 10,
                .l2_bytes = 1 << 20,
                .l3_bytes = 16 << 20};
}

// A Raspberry Pi 4: every AArch64 CPU has these instructions.
Target PresetNeon() { return AArch64("arm/cortex-a72", {"neon"}, 4, {32, 1024, 0}).target; }

// A Raspberry Pi 5: with dot products of bytes and arithmetic in f16.
Target PresetDotProd() {
  return AArch64("arm/cortex-a76", {"dotprod", "fullfp16", "neon"}, 4, {64, 512, 2048}).target;
}

// A device of which only the guarantees of OpenCL 1.2 are known.
Target PresetOpenCl() {
  return Target{.kind = Kind::kOpenCl,
                .arch = "opencl",
                .triple = "spir64-unknown-unknown",
                .cpu = "generic",
                .cores = 4,
                .vector_bits = 128,
                .vector_registers = 64,
                .l1_bytes = 16 << 10,
                .l2_bytes = 512 << 10};
}

// Mali GPUs keep shared memory in the caches of main memory. A thread may use 32 registers at full
// occupancy, and 64 at half of it. Numbers are those of ARM's public data sheets.
Target PresetMali(absl::string_view cpu, int cores, int sub_group, int64_t l2_bytes,
                  int unit_threads) {
  Target target = PresetOpenCl();
  target.cpu = std::string(cpu);
  target.cores = cores;
  target.l2_bytes = l2_bytes;
  target.gpu = {.max_threads = 512,
                .shared_bytes = 32 << 10,
                .sub_group = sub_group,
                .registers = 64,
                .unit_threads = unit_threads,
                .unit_shared_bytes = 32 << 10,
                .unit_registers = int64_t{unit_threads} * 32,
                .has_shared_memory = false};
  return target;
}
Target PresetMaliG610() {
  Target target = PresetMali("mali-g610", 4, 16, 1 << 20, 2048);
  target.features = {"arm_dot"};  // published lists of extensions, old and new, have it
  return target;
}
Target PresetMaliG52() { return PresetMali("mali-g52", 2, 8, 256 << 10, 768); }

struct Preset {
  absl::string_view name;
  Target (*make)();
};
constexpr std::array<Preset, 10> kPresets = {{{"native", DetectHost},
                                              {"x86-avx2", PresetAvx2},
                                              {"x86-avx512", PresetAvx512},
                                              {"arm-neon", PresetNeon},
                                              {"arm-dotprod", PresetDotProd},
                                              {"intel/sapphirerapids", PresetSapphireRapids},
                                              {"intel/graniterapids", PresetGraniteRapids},
                                              {"generic/opencl", PresetOpenCl},
                                              {"arm/mali-g610", PresetMaliG610},
                                              {"arm/mali-g52", PresetMaliG52}}};

std::map<std::string, TargetResolver, std::less<>>& Resolvers() {
  static auto* const resolvers = new std::map<std::string, TargetResolver, std::less<>>;
  return *resolvers;
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

// Core counts and caches are those of a common product with this core, which the comment names.
const std::vector<ArmPreset>& ArmPresets() {
  static const auto* const presets = new std::vector<ArmPreset>{
      // Raspberry Pi 2
      Armv7("arm/cortex-a7", 4, {32, 512, 0}),
      // Raspberry Pi 3
      AArch64("arm/cortex-a53", {"neon"}, 4, {32, 512, 0}),
      // RK3568
      AArch64("arm/cortex-a55", {"dotprod", "fullfp16", "neon"}, 4, {32, 128, 512}),
      {"arm/cortex-a72", PresetNeon()},
      {"arm/cortex-a76", PresetDotProd()},
      // The three middle cores and the largest core of a Snapdragon 888
      AArch64("arm/cortex-a78", {"dotprod", "fullfp16", "neon"}, 3, {64, 512, 4096}),
      AArch64("arm/cortex-x1", {"dotprod", "fullfp16", "neon"}, 1, {64, 1024, 4096}),
      // Graviton 2
      AArch64("arm/neoverse-n1", {"dotprod", "fullfp16", "neon"}, 64, {64, 1024, 32 << 10}),
      // Graviton 3
      AArch64("arm/neoverse-v1", {"bf16", "dotprod", "fullfp16", "i8mm", "neon", "sve"}, 64,
              {64, 1024, 32 << 10}, 256),
      // Graviton 4
      AArch64("arm/neoverse-v2", {"bf16", "dotprod", "fullfp16", "i8mm", "neon", "sve", "sve2"}, 96,
              {64, 2048, 36 << 10}),
      // The four performance cores under Linux; the L3 is the system-level cache
      AArch64("arm/apple-m1", {"dotprod", "fullfp16", "neon"}, 4, {128, 12 << 10, 8 << 10, 128}),
  };
  return *presets;
}

void AddTargetResolver(absl::string_view kind, TargetResolver resolver) {
  Resolvers().emplace(kind, resolver);
}

absl::StatusOr<Target> TargetByName(absl::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.make();
  }
  for (const ArmPreset& preset : ArmPresets()) {
    if (preset.name == name) return preset.target;
  }
  for (const NvidiaGpu& gpu : NvidiaGpus()) {
    if (gpu.preset == name) return CudaTarget(gpu);
  }
  const auto resolver = Resolvers().find(name.substr(0, name.find(':')));
  if (resolver != Resolvers().end()) return resolver->second(name);
  std::vector<std::string> known = TargetNames();
  for (const auto& [kind, unused] : Resolvers()) {
    known.insert(known.end(), {kind, absl::StrCat(kind, ":N")});
  }
  return absl::NotFoundError(
      absl::StrCat("unknown target '", name, "'; known: ", absl::StrJoin(known, ", ")));
}

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  for (const ArmPreset& preset : ArmPresets()) names.emplace_back(preset.name);
  for (const NvidiaGpu& gpu : NvidiaGpus()) names.emplace_back(gpu.preset);
  return names;
}

}  // namespace hone::target
