#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/target/arm_presets.h"
#include "common/target/nvidia_gpus.h"
#include "common/target/target.h"
#include "common/target/target_resolver.h"

namespace hone::target {
namespace {

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

// Like a Cortex-A72 board: every AArch64 CPU has these instructions.
Target PresetNeon() {
  return Target{.arch = "aarch64",
                .triple = "aarch64-unknown-linux-gnu",
                .cpu = "cortex-a72",
                .features = {"neon"},
                .cores = 4,
                .vector_bits = 128,
                .vector_registers = 32,
                .l1_bytes = 32 << 10,
                .l2_bytes = 1 << 20};
}

// Like a Cortex-A76 board: with dot products of bytes and arithmetic in f16.
Target PresetDotProd() {
  return Target{.arch = "aarch64",
                .triple = "aarch64-unknown-linux-gnu",
                .cpu = "cortex-a76",
                .features = {"dotprod", "fullfp16", "neon"},
                .cores = 4,
                .vector_bits = 128,
                .vector_registers = 32,
                .l1_bytes = 64 << 10,
                .l2_bytes = 512 << 10,
                .l3_bytes = 2 << 20};
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
constexpr std::array<Preset, 8> kPresets = {{{"native", DetectHost},
                                             {"x86-avx2", PresetAvx2},
                                             {"x86-avx512", PresetAvx512},
                                             {"arm-neon", PresetNeon},
                                             {"arm-dotprod", PresetDotProd},
                                             {"generic/opencl", PresetOpenCl},
                                             {"arm/mali-g610", PresetMaliG610},
                                             {"arm/mali-g52", PresetMaliG52}}};

std::map<std::string, TargetResolver, std::less<>>& Resolvers() {
  static auto* const resolvers = new std::map<std::string, TargetResolver, std::less<>>;
  return *resolvers;
}

}  // namespace

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
