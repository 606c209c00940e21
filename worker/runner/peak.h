#ifndef HONE_WORKER_RUNNER_PEAK_H_
#define HONE_WORKER_RUNNER_PEAK_H_

#include <string>
#include <vector>

namespace hone::runner {

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
  bool steady = true;  // the best rounds agreed, so nothing else used the machine

  // The best of all widths. REQUIRES: there are widths.
  double gflops_one_core() const;
  double gflops_all_cores() const;
  // {"cores": 2, "steady": true, "gflops_one_core": …, "gflops_all_cores": …, "read_gbps_…": …,
  // "widths": [{"vector_bits": 256, …}, …]}
  std::string ToJson() const;
};

// Measures on `cores` pinned threads and takes the best of several rounds. Takes about 0.2 s, or up
// to 2 s on a disturbed machine. The caller holds the timing lock.
Peak MeasurePeak(int cores);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_PEAK_H_
