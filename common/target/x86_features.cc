#include "common/target/x86_features.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_split.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone::target {
namespace {

using enum CpuidRegister;

// Intel SDM volume 2, CPUID; AMD64 manual volume 3, appendix E.
constexpr std::array kX86Features = {
    X86Feature{"amx-bf16", 7, 0, kEdx, 22, kSavesAmx},
    X86Feature{"amx-complex", 7, 1, kEdx, 8, kSavesAmx},
    X86Feature{"amx-fp16", 7, 1, kEax, 21, kSavesAmx},
    X86Feature{"amx-int8", 7, 0, kEdx, 25, kSavesAmx},
    X86Feature{"amx-tile", 7, 0, kEdx, 24, kSavesAmx},
    X86Feature{"avx", 1, 0, kEcx, 28, kSavesAvx},
    X86Feature{"avx2", 7, 0, kEbx, 5, kSavesAvx},
    X86Feature{"avx512bf16", 7, 1, kEax, 5, kSavesAvx512},
    X86Feature{"avx512bitalg", 7, 0, kEcx, 12, kSavesAvx512},
    X86Feature{"avx512bw", 7, 0, kEbx, 30, kSavesAvx512},
    X86Feature{"avx512cd", 7, 0, kEbx, 28, kSavesAvx512},
    X86Feature{"avx512dq", 7, 0, kEbx, 17, kSavesAvx512},
    X86Feature{"avx512f", 7, 0, kEbx, 16, kSavesAvx512},
    X86Feature{"avx512fp16", 7, 0, kEdx, 23, kSavesAvx512},
    X86Feature{"avx512ifma", 7, 0, kEbx, 21, kSavesAvx512},
    X86Feature{"avx512vbmi", 7, 0, kEcx, 1, kSavesAvx512},
    X86Feature{"avx512vbmi2", 7, 0, kEcx, 6, kSavesAvx512},
    X86Feature{"avx512vl", 7, 0, kEbx, 31, kSavesAvx512},
    X86Feature{"avx512vnni", 7, 0, kEcx, 11, kSavesAvx512},
    X86Feature{"avx512vpopcntdq", 7, 0, kEcx, 14, kSavesAvx512},
    X86Feature{"avxifma", 7, 1, kEax, 23, kSavesAvx},
    X86Feature{"avxneconvert", 7, 1, kEdx, 5, kSavesAvx},
    X86Feature{"avxvnni", 7, 1, kEax, 4, kSavesAvx},
    X86Feature{"avxvnniint16", 7, 1, kEdx, 10, kSavesAvx},
    X86Feature{"avxvnniint8", 7, 1, kEdx, 4, kSavesAvx},
    X86Feature{"bmi", 7, 0, kEbx, 3, 0},
    X86Feature{"bmi2", 7, 0, kEbx, 8, 0},
    X86Feature{"cmpccxadd", 7, 1, kEax, 7, 0},
    X86Feature{"cx16", 1, 0, kEcx, 13, 0},
    X86Feature{"f16c", 1, 0, kEcx, 29, kSavesAvx},
    X86Feature{"fma", 1, 0, kEcx, 12, kSavesAvx},
    X86Feature{"fma4", 0x80000001, 0, kEcx, 16, kSavesAvx},
    X86Feature{"gfni", 7, 0, kEcx, 8, 0},
    X86Feature{"lzcnt", 0x80000001, 0, kEcx, 5, 0},
    X86Feature{"movbe", 1, 0, kEcx, 22, 0},
    X86Feature{"popcnt", 1, 0, kEcx, 23, 0},
    X86Feature{"sahf", 0x80000001, 0, kEcx, 0, 0},
    X86Feature{"sse3", 1, 0, kEcx, 0, 0},
    X86Feature{"sse4.1", 1, 0, kEcx, 19, 0},
    X86Feature{"sse4.2", 1, 0, kEcx, 20, 0},
    X86Feature{"sse4a", 0x80000001, 0, kEcx, 6, 0},
    X86Feature{"ssse3", 1, 0, kEcx, 9, 0},
    X86Feature{"tbm", 0x80000001, 0, kEcx, 21, 0},
    X86Feature{"xop", 0x80000001, 0, kEcx, 11, kSavesAvx},
};

// A CPU has the features of its base and those listed in `more`. A base precedes the CPUs derived
// from it.
struct Cpu {
  absl::string_view name;
  absl::string_view base;
  absl::string_view more;  // comma-separated
};
constexpr std::array kCpus = {
    Cpu{"x86-64", "", ""},
    Cpu{"x86-64-v3", "x86-64",
        "avx,avx2,bmi,bmi2,cx16,f16c,fma,lzcnt,movbe,popcnt,sahf,sse3,sse4.1,sse4.2,ssse3"},
    Cpu{"x86-64-v4", "x86-64-v3", "avx512bw,avx512cd,avx512dq,avx512f,avx512vl"},
    Cpu{"haswell", "x86-64-v3", ""},
    Cpu{"broadwell", "haswell", ""},
    Cpu{"skylake", "haswell", ""},
    Cpu{"skylake-avx512", "x86-64-v4", ""},
    Cpu{"cascadelake", "skylake-avx512", "avx512vnni"},
    Cpu{"cooperlake", "cascadelake", "avx512bf16"},
    Cpu{"cannonlake", "skylake-avx512", "avx512ifma,avx512vbmi"},
    Cpu{"icelake-client", "cannonlake", "avx512bitalg,avx512vbmi2,avx512vnni,avx512vpopcntdq,gfni"},
    Cpu{"icelake-server", "icelake-client", ""},
    Cpu{"tigerlake", "icelake-client", ""},
    Cpu{"rocketlake", "icelake-client", ""},
    Cpu{"sapphirerapids", "icelake-server", "avx512bf16,avx512fp16,avxvnni"},
    Cpu{"emeraldrapids", "sapphirerapids", ""},
    Cpu{"graniterapids", "sapphirerapids", ""},
    Cpu{"graniterapids-d", "sapphirerapids", ""},
    Cpu{"alderlake", "skylake", "avxvnni,gfni"},
    Cpu{"meteorlake", "alderlake", ""},
    Cpu{"raptorlake", "alderlake", ""},
    Cpu{"gracemont", "alderlake", ""},
    Cpu{"arrowlake", "alderlake", "avxifma,avxneconvert,avxvnniint8,cmpccxadd"},
    Cpu{"sierraforest", "arrowlake", ""},
    Cpu{"grandridge", "arrowlake", ""},
    Cpu{"lunarlake", "arrowlake", "avxvnniint16"},
    Cpu{"znver1", "x86-64-v3", "sse4a"},
    Cpu{"znver2", "znver1", ""},
    Cpu{"znver3", "znver2", ""},
    Cpu{"znver4", "znver3",
        "avx512bf16,avx512bitalg,avx512bw,avx512cd,avx512dq,avx512f,avx512ifma,avx512vbmi,"
        "avx512vbmi2,avx512vl,avx512vnni,avx512vpopcntdq,gfni"},
    Cpu{"znver5", "znver4", "avxvnni"},
};

struct ModelRange {
  int first;
  int last;
  absl::string_view name;
};

// Family 6 (Intel SDM volume 4, table 2-1; the names are LLVM's).
constexpr std::array<ModelRange, 35> kIntelFamily6 = {{
    {0x3c, 0x3c, "haswell"},         {0x3f, 0x3f, "haswell"},        {0x45, 0x46, "haswell"},
    {0x3d, 0x3d, "broadwell"},       {0x47, 0x47, "broadwell"},      {0x4f, 0x4f, "broadwell"},
    {0x56, 0x56, "broadwell"},       {0x4e, 0x4e, "skylake"},        {0x5e, 0x5e, "skylake"},
    {0x8e, 0x8e, "skylake"},         {0x9e, 0x9e, "skylake"},        {0xa5, 0xa6, "skylake"},
    {0x66, 0x66, "cannonlake"},      {0x6a, 0x6a, "icelake-server"}, {0x6c, 0x6c, "icelake-server"},
    {0x7d, 0x7e, "icelake-client"},  {0x8c, 0x8d, "tigerlake"},      {0x8f, 0x8f, "sapphirerapids"},
    {0x97, 0x97, "alderlake"},       {0x9a, 0x9a, "alderlake"},      {0xa7, 0xa7, "rocketlake"},
    {0xaa, 0xaa, "meteorlake"},      {0xac, 0xac, "meteorlake"},     {0xad, 0xad, "graniterapids"},
    {0xae, 0xae, "graniterapids-d"}, {0xaf, 0xaf, "sierraforest"},   {0xb5, 0xb5, "meteorlake"},
    {0xb6, 0xb6, "grandridge"},      {0xb7, 0xb7, "raptorlake"},     {0xba, 0xba, "raptorlake"},
    {0xbd, 0xbd, "lunarlake"},       {0xbe, 0xbe, "gracemont"},      {0xbf, 0xbf, "raptorlake"},
    {0xc5, 0xc6, "arrowlake"},       {0xcf, 0xcf, "emeraldrapids"},
}};

}  // namespace

const X86Feature* FindX86Feature(absl::string_view name) {
  const auto found = std::ranges::find(kX86Features, name, &X86Feature::name);
  return found == kX86Features.end() ? nullptr : &*found;
}

std::optional<std::vector<absl::string_view>> FeaturesOfX86Cpu(absl::string_view cpu) {
  if (std::ranges::find(kCpus, cpu, &Cpu::name) == kCpus.end()) return std::nullopt;
  std::vector<absl::string_view> features;
  while (!cpu.empty()) {
    const Cpu& entry = *std::ranges::find(kCpus, cpu, &Cpu::name);
    for (const absl::string_view feature : absl::StrSplit(entry.more, ',', absl::SkipEmpty())) {
      features.push_back(feature);
    }
    cpu = entry.base;
  }
  std::ranges::sort(features);
  return features;
}

std::vector<absl::string_view> X86CpuNames() {
  std::vector<absl::string_view> names;
  for (const Cpu& cpu : kCpus) names.push_back(cpu.name);
  return names;
}

absl::string_view X86CpuName(absl::string_view vendor, int family, int model, bool has_vnni,
                             bool has_bf16) {
  if (vendor == "GenuineIntel" && family == 6) {
    if (model == 0x55) {  // three generations of servers share this number
      return has_bf16 ? "cooperlake" : has_vnni ? "cascadelake" : "skylake-avx512";
    }
    for (const ModelRange& range : kIntelFamily6) {
      if (model >= range.first && model <= range.last) return range.name;
    }
  }
  if (vendor == "AuthenticAMD") {
    if (family == 0x17) return model >= 0x30 ? "znver2" : "znver1";
    if (family == 0x19) {
      const int row = model >> 4;
      return row == 1 || row == 6 || row == 7 || row == 0xa ? "znver4" : "znver3";
    }
    if (family == 0x1a) return "znver5";
  }
  return "";
}

absl::string_view UsableX86CpuName(absl::string_view model,
                                   const std::function<bool(const X86Feature&)>& has) {
  for (const absl::string_view name :
       {model, absl::string_view("x86-64-v4"), absl::string_view("x86-64-v3")}) {
    const auto features = FeaturesOfX86Cpu(name);
    if (features.has_value() &&
        std::ranges::all_of(*features, [&](auto f) { return has(*FindX86Feature(f)); })) {
      return name;
    }
  }
  return "x86-64";
}

bool HostHas([[maybe_unused]] const X86Feature& feature) {
#if defined(__x86_64__)
  std::array<unsigned, 4> registers = {};
  auto& [eax, ebx, ecx, edx] = registers;
  if (feature.saved != 0) {
    constexpr unsigned kOsxsave = 1u << 27;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) return false;
    unsigned low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & feature.saved) != feature.saved) return false;
  }
  if (__get_cpuid_count(feature.leaf, feature.subleaf, &eax, &ebx, &ecx, &edx) == 0) return false;
  return registers[static_cast<size_t>(feature.in)] >> feature.bit & 1;
#else
  return false;
#endif
}

}  // namespace hone::target
