#include "common/target/arm_cpu.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hone::target {
namespace {

// A core by the implementer and the part number of its Main ID Register.
struct Core {
  absl::string_view implementer;
  absl::string_view part;
  absl::string_view name;   // LLVM's
  absl::string_view words;  // of /proc/cpuinfo's Features line that the name implies
};
constexpr absl::string_view kV82 = "asimddp asimdhp";
constexpr absl::string_view kV1 = "asimddp asimdhp bf16 i8mm sve";
constexpr absl::string_view kV9 = "asimddp asimdhp bf16 i8mm sve sve2";
// Cores of boards, phones and servers.
constexpr Core kCores[] = {
    {"0x41", "0xc07", "cortex-a7", "neon vfpv4"}, {"0x41", "0xc0f", "cortex-a15", "neon vfpv4"},
    {"0x41", "0xd03", "cortex-a53", "crc32"},     {"0x41", "0xd05", "cortex-a55", kV82},
    {"0x41", "0xd07", "cortex-a57", "crc32"},     {"0x41", "0xd08", "cortex-a72", "crc32"},
    {"0x41", "0xd09", "cortex-a73", "crc32"},     {"0x41", "0xd0a", "cortex-a75", kV82},
    {"0x41", "0xd0b", "cortex-a76", kV82},        {"0x41", "0xd0c", "neoverse-n1", kV82},
    {"0x41", "0xd0d", "cortex-a77", kV82},        {"0x41", "0xd40", "neoverse-v1", kV1},
    {"0x41", "0xd41", "cortex-a78", kV82},        {"0x41", "0xd44", "cortex-x1", kV82},
    {"0x41", "0xd49", "neoverse-n2", kV9},        {"0x41", "0xd4f", "neoverse-v2", kV9},
    {"0x61", "0x022", "apple-m1", kV82},          {"0x61", "0x023", "apple-m1", kV82},
};

// LLVM's features with their words in /proc/cpuinfo, sorted by feature.
struct Feature {
  absl::string_view arch;
  absl::string_view feature;
  absl::string_view word;
};
constexpr Feature kFeatures[] = {
    {"aarch64", "bf16", "bf16"},        {"aarch64", "dotprod", "asimddp"},
    {"aarch64", "fullfp16", "asimdhp"}, {"aarch64", "i8mm", "i8mm"},
    {"aarch64", "neon", "asimd"},       {"armv7", "neon", "neon"},
    {"aarch64", "sve", "sve"},          {"aarch64", "sve2", "sve2"},
    {"armv7", "vfp4", "vfpv4"},
};

// The value of the last line with this key.
absl::string_view ValueOf(absl::string_view cpuinfo, absl::string_view key) {
  absl::string_view value;
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(parts.first) == key)
      value = absl::StripAsciiWhitespace(parts.second);
  }
  return value;
}

// The entry of the last core; nullptr if it is unknown.
const Core* FindCore(absl::string_view cpuinfo) {
  const absl::string_view implementer = ValueOf(cpuinfo, "CPU implementer");
  const absl::string_view part = ValueOf(cpuinfo, "CPU part");
  const auto* const found = std::ranges::find_if(kCores, [&](const Core& core) {
    return core.implementer == implementer && core.part == part;
  });
  return found == std::end(kCores) ? nullptr : found;
}

}  // namespace

std::string CpuInfoOf(absl::string_view cpuinfo, absl::Span<const int> cpus) {
  std::string text;
  bool wanted = false;
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    int cpu = 0;
    if (absl::StripAsciiWhitespace(parts.first) == "processor" &&
        absl::SimpleAtoi(parts.second, &cpu)) {
      wanted = std::ranges::count(cpus, cpu) > 0;
    }
    if (wanted) absl::StrAppend(&text, line, "\n");
  }
  return text.empty() ? std::string(cpuinfo) : text;
}

std::string ArmCoreName(absl::string_view cpuinfo) {
  if (const Core* const core = FindCore(cpuinfo); core != nullptr) return std::string(core->name);
  const absl::string_view implementer = ValueOf(cpuinfo, "CPU implementer");
  return implementer.empty() ? "" : absl::StrCat(implementer, " ", ValueOf(cpuinfo, "CPU part"));
}

void DescribeArmCpu(absl::string_view arch, absl::string_view cpuinfo, int sve_bits,
                    Target& target) {
  const bool wide = arch == "aarch64";
  const std::vector<absl::string_view> words =
      absl::StrSplit(ValueOf(cpuinfo, "Features"), ' ', absl::SkipEmpty());
  const auto has = [&](absl::string_view word) { return std::ranges::count(words, word) > 0; };
  target.arch = std::string(arch);
  target.triple = wide ? "aarch64-unknown-linux-gnu" : "armv7-unknown-linux-gnueabihf";
  target.cpu = "generic";
  target.vector_bits = 128;
  target.vector_registers = wide ? 32 : 16;
  target.features.clear();
  for (const Feature& feature : kFeatures) {
    if (feature.arch == arch && has(feature.word)) target.features.emplace_back(feature.feature);
  }
  // Every AArch64 CPU has NEON, even if the text does not list it.
  if (wide && !target.HasFeature("neon")) {
    target.features.emplace_back("neon");
    std::ranges::sort(target.features);
  }
  if (target.HasFeature("sve")) target.vector_bits = std::max(sve_bits, 128);
  const Core* const core = FindCore(cpuinfo);
  if (core == nullptr) return;
  const std::vector<absl::string_view> implied = absl::StrSplit(core->words, ' ');
  if (std::ranges::all_of(implied, has)) target.cpu = std::string(core->name);
}

}  // namespace hone::target
