#include "common/target/arm_presets.h"

#include <string>

namespace hone::target {
namespace {

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

}  // namespace

// Core counts and caches are those of a common product with this core, which the comment names.
// Cortex-A72 and A76 are the same targets as arm-neon and arm-dotprod.
const std::vector<ArmPreset>& ArmPresets() {
  static const auto* const presets = new std::vector<ArmPreset>{
      // Raspberry Pi 2
      Armv7("arm/cortex-a7", 4, {32, 512, 0}),
      // Raspberry Pi 3
      AArch64("arm/cortex-a53", {"neon"}, 4, {32, 512, 0}),
      // RK3568
      AArch64("arm/cortex-a55", {"dotprod", "fullfp16", "neon"}, 4, {32, 128, 512}),
      // Raspberry Pi 4
      AArch64("arm/cortex-a72", {"neon"}, 4, {32, 1024, 0}),
      // Raspberry Pi 5
      AArch64("arm/cortex-a76", {"dotprod", "fullfp16", "neon"}, 4, {64, 512, 2048}),
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

}  // namespace hone::target
