#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/target/arm_cpu.h"
#include "common/target/caches.h"
#include "common/target/host.h"
#include "common/target/target.h"
#include "common/target/x86_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/prctl.h>
#endif

namespace hone::target {
namespace {

// The CPU quota of the cgroup, in cores; 0 if there is no limit or it cannot be read.
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

// Features that distinguish targets. Others that a CPU's name implies only decide the name: listing
// them here would change the keys of known machines.
std::vector<std::string> DetectFeatures() {
  std::vector<std::string> features;
  for (const absl::string_view name :
       {"amx-bf16", "amx-int8", "avx", "avx2", "avx512bf16", "avx512bw", "avx512cd", "avx512dq",
        "avx512f", "avx512fp16", "avx512vbmi", "avx512vl", "avx512vnni", "avxvnni", "f16c",
        "fma"}) {
    if (HostHas(*FindX86Feature(name))) features.emplace_back(name);
  }
  return features;
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
  return std::string(UsableX86CpuName(name, HostHas));
}

void DetectProcessor(Target& target) {
  target.arch = "x86_64";
  target.triple = "x86_64-pc-linux-gnu";
  target.features = DetectFeatures();
  target.cpu = DetectCpuName(target);
  const bool avx512 = target.HasFeature("avx512f") && target.HasFeature("avx512vl");
  target.vector_bits = avx512 ? 512 : target.HasFeature("avx2") ? 256 : 128;
  target.vector_registers = avx512 ? 32 : 16;
}

#elif defined(__aarch64__) || defined(__arm__)

void DetectProcessor(Target& target) {
  const absl::StatusOr<std::string> all = ReadFile("/proc/cpuinfo");
  const std::string info = all.ok() ? CpuInfoOf(*all, UsableCpus()) : "";
#if defined(__aarch64__)
  const int sve = prctl(PR_SVE_GET_VL);  // negative without SVE
  const int sve_bits = sve < 0 ? 0 : (sve & PR_SVE_VL_LEN_MASK) * 8;
  DescribeArmCpu("aarch64", info, sve_bits, target);
#else
  DescribeArmCpu("armv7", info, 0, target);
#endif
}

#else
#error "Hone runs on x86-64, AArch64 and ARMv7"
#endif

}  // namespace

std::vector<int> UsableCpus() {
  std::vector<int> cpus;
  cpu_set_t mask;
  const bool known = sched_getaffinity(0, sizeof mask, &mask) == 0;
  const int count = known ? CPU_SETSIZE : static_cast<int>(std::thread::hardware_concurrency());
  for (int cpu = 0; cpu < count; ++cpu) {
    if (!known || CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

int UsableCores() {
  int cores = static_cast<int>(UsableCpus().size());
  const double quota = QuotaInCores();
  if (quota > 0) cores = std::min(cores, static_cast<int>(quota));
  return std::max(cores, 1);
}

Target DetectHost() {
  Target target;
  DetectProcessor(target);
  target.cores = UsableCores();
  ReadCaches("", UsableCpus(), target);
  return target;
}

}  // namespace hone::target
