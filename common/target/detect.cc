#include <sched.h>
#include <unistd.h>

#include <thread>

#include "common/base/file.h"
#include "common/target/arm_cpu.h"
#include "common/target/host.h"
#include "common/target/target.h"
#include "common/target/thread_pool.h"
#include "common/target/x86_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/prctl.h>
#endif

namespace hone::target {
namespace {

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

int UsableCores() { return hone_usable_cpus(); }

Target DetectHost() {
  Target target;
  DetectProcessor(target);
  target.cores = UsableCores();
  ReadCaches("", UsableCpus(), target);
  return target;
}

}  // namespace hone::target
