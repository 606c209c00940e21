#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/target/host.h"
#include "common/target/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone::target {
namespace {

// The first line of a small file, "" when it cannot be read.
std::string FirstLine(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) return "";
  return std::string(absl::StripAsciiWhitespace(content->substr(0, content->find('\n'))));
}

// "1024K" → 1048576; 0 when it is none.
int64_t ParseSize(absl::string_view text) {
  int64_t unit = 1;
  if (absl::ConsumeSuffix(&text, "K")) unit = 1 << 10;
  if (absl::ConsumeSuffix(&text, "M")) unit = 1 << 20;
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) && value > 0 ? value * unit : 0;
}

void DetectCaches(Target& target) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::string type = FirstLine(folder + "type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    const int64_t size = ParseSize(FirstLine(folder + "size"));
    const std::string level = FirstLine(folder + "level");
    if (size == 0) continue;
    if (level == "1") target.l1_bytes = size;
    if (level == "2") target.l2_bytes = size;
    if (level == "3") target.l3_bytes = size;
    int line = 0;
    if (absl::SimpleAtoi(FirstLine(folder + "coherency_line_size"), &line) && line >= 8) {
      target.cache_line_bytes = line;
    }
  }
}

// CPUs' worth of time that the cgroup grants; 0: no limit, or none that can be read.
double QuotaInCores() {
  const std::string v2 = FirstLine("/sys/fs/cgroup/cpu.max");  // "max 100000" or "150000 100000"
  std::string quota_text = FirstLine("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::string period_text = FirstLine("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  const std::vector<std::string> words = absl::StrSplit(v2, ' ', absl::SkipEmpty());
  if (words.size() == 2) {
    quota_text = words[0];
    period_text = words[1];
  }
  double quota = 0;
  double period = 0;
  if (!absl::SimpleAtod(quota_text, &quota) || !absl::SimpleAtod(period_text, &period)) return 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

#if defined(__x86_64__)

// Every feature that code generation looks at, by LLVM's name. The list is sorted; the compiler's
// own CPU model reads CPUID and asks the operating system (XGETBV) whether the registers are saved.
std::vector<std::string> X86Features() {
  std::vector<std::string> features;
  const auto add = [&](bool has, absl::string_view name) {
    if (has) features.emplace_back(name);
  };
  __builtin_cpu_init();
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
  const bool avx = __builtin_cpu_supports("avx");
  const bool avx512 = __builtin_cpu_supports("avx512f");
  const bool amx_int8 = avx512 && (edx >> 25 & 1);
  const bool amx_bf16 = avx512 && (edx >> 22 & 1);
  const bool fp16 = avx512 && (edx >> 23 & 1);
  __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx);
  const bool avx_vnni = avx && (eax >> 4 & 1);
  const bool bf16 = avx512 && (eax >> 5 & 1);
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const bool f16c = avx && (ecx >> 29 & 1);
  add(amx_bf16, "amx-bf16");
  add(amx_int8, "amx-int8");
  add(avx, "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(bf16, "avx512bf16");
  add(__builtin_cpu_supports("avx512bw"), "avx512bw");
  add(__builtin_cpu_supports("avx512cd"), "avx512cd");
  add(__builtin_cpu_supports("avx512dq"), "avx512dq");
  add(avx512, "avx512f");
  add(fp16, "avx512fp16");
  add(__builtin_cpu_supports("avx512vbmi"), "avx512vbmi");
  add(__builtin_cpu_supports("avx512vl"), "avx512vl");
  add(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  add(avx_vnni, "avxvnni");
  add(f16c, "f16c");
  add(__builtin_cpu_supports("fma"), "fma");
  return features;
}

// What LLVM takes for granted on a CPU of that name and may use unasked. A hypervisor can hide some
// of it; then the name must not be used.
bool HasAllThatNameImplies(absl::string_view cpu, const Target& target) {
  const auto has = [&](std::initializer_list<absl::string_view> features) {
    return std::ranges::all_of(features, [&](auto f) { return target.HasFeature(f); });
  };
  if (!has({"avx2", "f16c", "fma"})) return false;
  constexpr std::array kAvx512 = {
      "skylake-avx512", "cascadelake",     "cooperlake", "cannonlake",     "icelake-server",
      "icelake-client", "tigerlake",       "rocketlake", "sapphirerapids", "emeraldrapids",
      "graniterapids",  "graniterapids-d", "znver4",     "znver5"};
  const auto position = std::ranges::find(kAvx512, cpu);
  if (position == kAvx512.end()) return true;
  if (!has({"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"})) return false;
  const auto is_one_of = [&](std::initializer_list<absl::string_view> names) {
    return std::ranges::find(names, cpu) != names.end();
  };
  if (is_one_of({"skylake-avx512"})) return true;
  if (is_one_of({"cannonlake"})) return has({"avx512vbmi"});
  if (!has({"avx512vnni"})) return false;
  if (is_one_of({"cascadelake"})) return true;
  if (is_one_of({"cooperlake"})) return has({"avx512bf16"});
  if (!has({"avx512vbmi"})) return false;
  if (is_one_of({"icelake-server", "icelake-client", "tigerlake", "rocketlake"})) return true;
  if (!has({"avx512bf16"})) return false;
  if (is_one_of({"znver4", "znver5"})) return true;
  return has({"avx512fp16", "avxvnni"});
}

std::string DetectCpuName(const Target& target) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(0, &eax, &ebx, &ecx, &edx);
  std::string vendor;
  for (const unsigned word : {ebx, edx, ecx}) {
    vendor.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  int family = static_cast<int>(eax >> 8 & 0xf);
  int model = static_cast<int>(eax >> 4 & 0xf);
  if (family == 6 || family == 15) model += static_cast<int>(eax >> 16 & 0xf) << 4;
  if (family == 15) family += static_cast<int>(eax >> 20 & 0xff);
  const absl::string_view name = X86CpuName(vendor, family, model, target.HasFeature("avx512vnni"),
                                            target.HasFeature("avx512bf16"));
  if (!name.empty() && HasAllThatNameImplies(name, target)) return std::string(name);
  if (HasAllThatNameImplies("skylake-avx512", target)) return "x86-64-v4";
  if (HasAllThatNameImplies("haswell", target)) return "x86-64-v3";
  return "x86-64";
}

void DetectProcessor(Target& target) {
  target.arch = "x86_64";
  target.triple = "x86_64-pc-linux-gnu";
  target.features = X86Features();
  target.cpu = DetectCpuName(target);
  const bool avx512 = target.HasFeature("avx512f") && target.HasFeature("avx512vl");
  target.vector_bits = avx512 ? 512 : target.HasFeature("avx2") ? 256 : 128;
  target.vector_registers = avx512 ? 32 : 16;
}

#elif defined(__aarch64__)

void DetectProcessor(Target& target) {
  target.arch = "aarch64";
  target.triple = "aarch64-unknown-linux-gnu";
  target.cpu = "generic";
  target.vector_bits = 128;
  target.vector_registers = 32;
  const absl::StatusOr<std::string> info = ReadFile("/proc/cpuinfo");
  const std::string text = info.ok() ? *info : "";
  const auto has = [&](absl::string_view word) { return absl::StrContains(text, word); };
  if (has("asimddp")) target.features.push_back("dotprod");
  if (has("asimdhp")) target.features.push_back("fullfp16");
  target.features.push_back("neon");  // every AArch64 has it
  // Arm's part numbers (Main ID Register) of the cores that boards and servers have.
  struct Part {
    absl::string_view number;
    absl::string_view name;
  };
  constexpr std::array<Part, 8> kParts = {{{"0xd03", "cortex-a53"},
                                           {"0xd08", "cortex-a72"},
                                           {"0xd0b", "cortex-a76"},
                                           {"0xd05", "cortex-a55"},
                                           {"0xd0c", "neoverse-n1"},
                                           {"0xd40", "neoverse-v1"},
                                           {"0xd49", "neoverse-n2"},
                                           {"0xd4f", "neoverse-v2"}}};
  for (const Part& part : kParts) {
    if (has(absl::StrCat("CPU part\t: ", part.number))) target.cpu = std::string(part.name);
  }
}

#else
#error "Hone runs on x86-64 and AArch64"
#endif

}  // namespace

int UsableCores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = CPU_COUNT(&mask);
  const double quota = QuotaInCores();
  if (quota > 0) cores = std::min(cores, static_cast<int>(quota));
  return std::max(cores, 1);
}

Target DetectHost() {
  Target target;
  DetectProcessor(target);
  DetectCaches(target);
  target.cores = UsableCores();
  return target;
}

}  // namespace hone::target
