#include "worker/builder/cuda_facts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hone::builder {
namespace {

constexpr int64_t kRegisterUnit = 256;           // registers are allocated to a warp in this unit
constexpr int64_t kSystemSharedBytes = 1 << 10;  // reserved per block, since compute capability 8.0
constexpr int64_t kMaxBlocks = 32;               // per multiprocessor

// Returns the number before a phrase: 16 for "registers" in "Used 16 registers"; 0 if there is
// none.
int64_t NumberBefore(absl::string_view line, absl::string_view phrase) {
  const size_t at = line.find(absl::StrCat(" ", phrase));
  if (at == absl::string_view::npos) return 0;
  const size_t begin = line.find_last_of(" ,", at == 0 ? 0 : at - 1);
  const absl::string_view number =
      line.substr(begin == absl::string_view::npos ? 0 : begin + 1,
                  at - (begin == absl::string_view::npos ? 0 : begin + 1));
  int64_t value = 0;
  return absl::SimpleAtoi(number, &value) ? value : 0;
}

int64_t SharedOf(const target::GpuLaunch& launch, const CudaKernelFacts& facts) {
  return std::max(launch.shared_bytes, facts.shared_bytes);
}

int64_t BlocksByRegisters(const target::GpuLaunch& launch, const CudaKernelFacts& facts,
                          const target::GpuLimits& limits) {
  if (facts.registers == 0 || limits.unit_registers == 0) return kMaxBlocks;
  const int64_t warp = std::max(limits.sub_group, 1);
  const int64_t of_warp =
      (facts.registers * warp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  const int64_t warps = (launch.Threads() + warp - 1) / warp;
  return limits.unit_registers / (of_warp * warps);
}

}  // namespace

std::map<std::string, CudaKernelFacts, std::less<>> ReadCudaFacts(absl::string_view log) {
  std::map<std::string, CudaKernelFacts, std::less<>> facts;
  CudaKernelFacts* kernel = nullptr;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, "Compiling entry function '")) {
      const std::vector<absl::string_view> parts = absl::StrSplit(line, '\'');
      kernel = &facts[std::string(parts[1])];
    }
    if (kernel == nullptr) continue;
    if (absl::StrContains(line, "bytes stack frame")) {
      kernel->stack_bytes = NumberBefore(line, "bytes stack frame");
      kernel->spill_bytes = NumberBefore(line, "bytes spill loads");
    }
    if (absl::StrContains(line, "Used ")) {
      kernel->registers = static_cast<int>(NumberBefore(line, "registers"));
      kernel->shared_bytes = NumberBefore(line, "bytes smem");
    }
  }
  return facts;
}

double Occupancy(const target::GpuLaunch& launch, const CudaKernelFacts& facts,
                 const target::GpuLimits& limits) {
  const int64_t shared = SharedOf(launch, facts);
  const int64_t system = limits.unit_shared_bytes > limits.shared_bytes ? kSystemSharedBytes : 0;
  const int64_t blocks = std::min(
      {limits.unit_threads / launch.Threads(), kMaxBlocks, BlocksByRegisters(launch, facts, limits),
       shared + system == 0 ? kMaxBlocks : limits.unit_shared_bytes / (shared + system)});
  return static_cast<double>(blocks * launch.Threads()) / limits.unit_threads;
}

absl::Status CheckCudaLaunch(const target::GpuLaunch& launch, const CudaKernelFacts& facts,
                             const target::GpuLimits& limits) {
  const int64_t shared = SharedOf(launch, facts);
  if (shared > limits.shared_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.kernel, " uses ", shared,
                                                   " bytes of shared memory; a block may use ",
                                                   limits.shared_bytes));
  }
  if (BlocksByRegisters(launch, facts, limits) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", launch.kernel, " uses ", facts.registers, " registers in each of ",
                     launch.Threads(), " threads; a multiprocessor has ", limits.unit_registers));
  }
  return absl::OkStatus();
}

}  // namespace hone::builder
