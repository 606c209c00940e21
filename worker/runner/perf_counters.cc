#include "worker/runner/perf_counters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "worker/runner/timing.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone::runner {
namespace {

constexpr char kParanoid[] = "/proc/sys/kernel/perf_event_paranoid";
// The highest level that lets users count their own programs.
constexpr int kLeastParanoid = 2;
// The system exchanges groups of events every 4 ms.
constexpr absl::Duration kWithEvents = absl::Milliseconds(20);
constexpr absl::Duration kWithoutEvents = absl::Milliseconds(2);

// Loads that miss a cache: the cache, and "read" and "miss" of the kernel's perf_event.h.
constexpr uint64_t LoadMisses(uint64_t cache) {
  return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

constexpr uint64_t Raw(uint64_t event, uint64_t mask) { return event | mask << 8; }

int OpenEvent(const PerfEvent& event, int leader) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.disabled = leader < 0 ? 1 : 0;  // the others follow their leader
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, /*pid=*/0, /*cpu=*/-1, leader,
                                  PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

Processor Processor::Detect() {
  Processor processor;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return processor;
  char vendor[13] = {};
  std::memcpy(vendor, &b, 4);
  std::memcpy(vendor + 4, &d, 4);
  std::memcpy(vendor + 8, &c, 4);
  const absl::string_view name(vendor);
  if (name == "GenuineIntel") processor.vendor = Vendor::kIntel;
  if (name == "AuthenticAMD") processor.vendor = Vendor::kAmd;
  __get_cpuid(1, &a, &b, &c, &d);
  processor.family = static_cast<int>((a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0));
  constexpr unsigned kAdx = 1U << 19;  // came with the events, in Broadwell
  processor.counts_flops = processor.vendor == Vendor::kIntel &&
                           __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kAdx) != 0;
#elif defined(__aarch64__)
  processor.vendor = Vendor::kArm;
#endif
  return processor;
}

std::vector<PerfEvent> HardwareEvents(const Processor& processor) {
  using Vendor = Processor::Vendor;
  std::vector<PerfEvent> events = {
      {record::kCycles, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1, 0},
      {record::kInstructions, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1, 0},
      {record::kBranchMisses, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 1, 0},
      {record::kL1dMisses, PERF_TYPE_HW_CACHE, LoadMisses(PERF_COUNT_HW_CACHE_L1D), 1, 1},
      {record::kLlcMisses, PERF_TYPE_HW_CACHE, LoadMisses(PERF_COUNT_HW_CACHE_LL), 1, 1}};
  // The kernel's generic events mean different levels of caches on different processors.
  constexpr uint64_t kArmL2Refills = 0x17;
  switch (processor.vendor) {
    case Vendor::kIntel:  // requests to the last level
      events.push_back(
          {record::kL2Misses, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 1, 1});
      break;
    case Vendor::kAmd:  // misses of L2
      events.push_back({record::kL2Misses, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1, 1});
      break;
    case Vendor::kArm:
      events.push_back({record::kL2Misses, PERF_TYPE_RAW, kArmL2Refills, 1, 1});
      break;
    case Vendor::kOther:
      break;
  }
  if (processor.counts_flops) {
    // FP_ARITH_INST_RETIRED: instructions by type and width; a multiply-add counts twice.
    constexpr struct {
      uint64_t mask;
      double lanes;
    } kWidths[] = {{0x03, 1}, {0x04, 2}, {0x18, 4}, {0x60, 8}, {0x80, 16}};
    int group = 2;
    for (const auto& [mask, lanes] : kWidths)
      events.push_back({record::kFlops, PERF_TYPE_RAW, Raw(0xc7, mask), lanes, group++});
  }
  if (processor.vendor == Vendor::kAmd && processor.family >= 0x17) {
    // Retired operations of SSE and AVX; a multiply-add counts as two.
    const uint64_t all = processor.family == 0x17 ? 0xff : 0x0f;
    events.push_back({record::kFlops, PERF_TYPE_RAW, Raw(0x03, all), 1, 2});
  }
  return events;
}

double ScaledCount(uint64_t value, uint64_t enabled_ns, uint64_t running_ns) {
  if (running_ns == 0) return -1;
  return static_cast<double>(value) * static_cast<double>(enabled_ns) /
         static_cast<double>(running_ns);
}

std::string WhyRefused(int error, absl::string_view paranoid) {
  switch (error) {
    case EACCES:
    case EPERM: {
      int level = 0;
      if (absl::SimpleAtoi(paranoid, &level) && level > kLeastParanoid) {
        return absl::StrCat("the system forbids it; as root: sysctl kernel.perf_event_paranoid=",
                            kLeastParanoid, " (now ", level, ")");
      }
      return "the system forbids it, as containers usually do";
    }
    case ENOSYS:
      return "this system has no performance counters";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case EINVAL:
      return "this machine does not have it; virtual machines often have no hardware counters";
    default:
      return absl::StrCat("the system refuses it: ", std::strerror(error));
  }
}

PerfCounters::PerfCounters(const std::vector<PerfEvent>& events) {
  const std::string paranoid =
      std::string(absl::StripAsciiWhitespace(ReadFile(kParanoid).value_or("")));
  std::map<int, int> leaders;  // group → file
  for (const PerfEvent& event : events) {
    Open open{.event = event};
    const auto leader = leaders.find(event.group);
    open.fd = OpenEvent(event, leader == leaders.end() ? -1 : leader->second);
    if (open.fd < 0) {
      open.missing = WhyRefused(errno, paranoid);
    } else if (leader == leaders.end()) {
      open.leads = true;
      leaders[event.group] = open.fd;
    }
    open_.push_back(std::move(open));
  }
}

PerfCounters::~PerfCounters() {
  for (const Open& open : open_) {
    if (open.fd >= 0) close(open.fd);
  }
}

absl::Duration PerfCounters::least_time() const {
  const bool any = std::any_of(open_.begin(), open_.end(), [](const Open& o) { return o.fd >= 0; });
  return any ? kWithEvents : kWithoutEvents;
}

PerfCounters::Reading PerfCounters::Read(int fd) {
  uint64_t values[3] = {};
  if (read(fd, values, sizeof values) != sizeof values) return {};
  return {.value = values[0], .enabled_ns = values[1], .running_ns = values[2]};
}

PerfCounters::Usage PerfCounters::ReadUsage() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return {.processor_ns = ProcessorTimeNs(),
          .page_faults = static_cast<double>(usage.ru_minflt + usage.ru_majflt),
          .context_switches = static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw)};
}

void PerfCounters::Begin() {
  for (Open& open : open_) {
    if (open.fd >= 0) open.begin = Read(open.fd);
  }
  usage_ = ReadUsage();
  for (const Open& open : open_) {
    if (open.leads) ioctl(open.fd, PERF_EVENT_IOC_ENABLE, 0);
  }
}

std::vector<record::Counter> PerfCounters::End() {
  for (const Open& open : open_) {
    if (open.leads) ioctl(open.fd, PERF_EVENT_IOC_DISABLE, 0);
  }
  const Usage now = ReadUsage();
  std::vector<record::Counter> counters = {
      {record::kProcessorNs, now.processor_ns - usage_.processor_ns, ""},
      {record::kPageFaults, now.page_faults - usage_.page_faults, ""},
      {record::kContextSwitches, now.context_switches - usage_.context_switches, ""}};
  for (const Open& open : open_) {
    auto counter = std::find_if(counters.begin(), counters.end(), [&](const record::Counter& c) {
      return c.name == open.event.counter;
    });
    if (counter == counters.end()) counter = counters.insert(counter, {.name = open.event.counter});
    if (open.fd < 0) {
      counter->missing = open.missing;
      continue;
    }
    const Reading end = Read(open.fd);
    const double count =
        ScaledCount(end.value - open.begin.value, end.enabled_ns - open.begin.enabled_ns,
                    end.running_ns - open.begin.running_ns);
    if (count < 0) {
      counter->missing = "other programs or events used all hardware counters";
    } else {
      counter->value += open.event.weight * count;
    }
  }
  return counters;
}

}  // namespace hone::runner
