#include <array>

#include "common/target/host.h"

namespace hone::target {
namespace {

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

}  // namespace hone::target
