#ifndef HONE_WORKER_RUNNER_PERF_COUNTERS_H_
#define HONE_WORKER_RUNNER_PERF_COUNTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/counters.h"

namespace hone::runner {

// Counts what all threads of this process do. Tests have a fake.
class CounterSource {
 public:
  virtual ~CounterSource() = default;
  // How long the counted runs should take together, so that every counter gets its turn.
  virtual absl::Duration least_time() const = 0;
  virtual void Begin() = 0;
  // Returns the counts since Begin.
  virtual std::vector<record::Counter> End() = 0;
};

// The processor, as far as the numbers of its events depend on it.
struct Processor {
  enum class Vendor { kIntel, kAmd, kArm, kOther };
  Vendor vendor = Vendor::kOther;
  int family = 0;             // of CPUID
  bool counts_flops = false;  // Intel, from Broadwell on

  static Processor Detect();
};

// One event of the processor. Several events may form one counter, as a weighted sum.
struct PerfEvent {
  std::string counter;
  uint32_t type = 0;    // PERF_TYPE_…
  uint64_t config = 0;  // the event
  double weight = 1;
  int group = 0;  // events of a group count at the same time
};

// The hardware counters of common/record/counters.h. Those that the kind of processor does not have
// are left out.
std::vector<PerfEvent> HardwareEvents(const Processor& processor);

// Counts events of the processor with perf_event_open (Linux), in user space only, and faults,
// switches and processor time with getrusage. An event that the system refuses is missing, with the
// reason. If there are more events than hardware counters, the system counts them in turns, and the
// counts are scaled to the whole time.
//
// The events are opened in the constructor, so a sandbox that is entered later may forbid to open
// more. They count the calling thread and the threads that it starts later. They are off except
// between Begin and End, so other runs do not pay for them.
class PerfCounters final : public CounterSource {
 public:
  explicit PerfCounters(const std::vector<PerfEvent>& events);
  ~PerfCounters() override;
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;

  absl::Duration least_time() const override;
  void Begin() override;
  std::vector<record::Counter> End() override;

 private:
  // What the system tells about an event.
  struct Reading {
    uint64_t value = 0, enabled_ns = 0, running_ns = 0;
  };
  struct Open {
    PerfEvent event;
    int fd = -1;  // -1: refused
    bool leads = false;
    std::string missing;
    Reading begin;
  };
  struct Usage {
    double processor_ns = 0, page_faults = 0, context_switches = 0;
  };
  static Reading Read(int fd);
  static Usage ReadUsage();

  std::vector<Open> open_;
  Usage usage_;  // at Begin
};

// Scales a count to the whole time. `counted` has the differences of two readings. Negative: the
// event was never counted.
double ScaledCount(uint64_t value, uint64_t enabled_ns, uint64_t running_ns);

// Says why perf_event_open failed with `error`. `paranoid`: the contents of
// /proc/sys/kernel/perf_event_paranoid; "" if it cannot be read.
std::string WhyRefused(int error, absl::string_view paranoid);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_PERF_COUNTERS_H_
