#ifndef HONE_WORKER_RUNNER_PEAK_H_
#define HONE_WORKER_RUNNER_PEAK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hone::runner {

// Returns the time of a steady clock in nanoseconds.
inline double NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

// Loops of known cost. They measure the machine's peaks and show whether it is disturbed.

// Returns the widths of f32 vectors, in bits, for which this CPU has multiply-adds, ascending.
std::vector<int> FmaWidths();

// Runs multiply-adds in registers on the calling thread, with enough independent chains to fill
// every unit. Returns the number of floating-point operations done (two per lane and multiply-add).
// REQUIRES: width_bits is one of FmaWidths().
double RunFma(int width_bits, int64_t iterations);

// Reads `bytes` bytes. REQUIRES: `data` is 64-byte aligned and `bytes` is a multiple of 256.
// Returns a value that depends on all of them.
uint64_t RunStream(const void* data, size_t bytes);

// Removes `bytes` bytes from the caches, so that the next RunStream reads them from memory. On a
// CPU without such an instruction, loads them into the caches instead.
void Evict(const void* data, size_t bytes);

// The fastest of several rounds of some work.
struct Rate {
  double per_ns = 0;
  bool steady = false;  // the three fastest rounds agree
};

// Runs `work`, which gets the number of its thread and returns how much it did, in rounds on
// `threads` pinned threads at once until the best three rounds agree. A round takes as long as its
// slowest thread.
Rate BestRate(int threads, const std::function<double(int)>& work);

// The measured limits of the machine, with which reports compare kernels.
struct Peak {
  struct Width {
    int vector_bits = 0;
    double gflops_one_core = 0;   // f32 multiply-adds in registers, two operations each
    double gflops_all_cores = 0;  // the same on every core at once
  };
  std::vector<Width> widths;      // ascending
  double read_gbps_one_core = 0;  // streaming reads from memory, 10⁹ bytes per second
  double read_gbps_all_cores = 0;
  int cores = 1;
  bool steady = true;       // the best rounds agreed, so nothing else used the machine
  std::string calibration;  // target::Calibration as text; "": none

  // The best of all widths. REQUIRES: there are widths.
  double gflops_one_core() const;
  double gflops_all_cores() const;
  // {"cores": 2, "steady": true, "gflops_one_core": …, "gflops_all_cores": …, "read_gbps_…": …,
  // "calibration": "fma:0.29,…", "widths": [{"vector_bits": 256, …}, …]}
  std::string ToJson() const;
};

// Measures on `cores` pinned threads and takes the best of several rounds. Takes about 0.2 s, or up
// to 2 s on a disturbed machine. The caller holds the timing lock.
Peak MeasurePeak(int cores);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_PEAK_H_
