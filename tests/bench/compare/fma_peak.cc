#include <omp.h>

#include "tests/bench/compare/contender.h"
#include "worker/runner/peak.h"

namespace hone::compare {
namespace {

constexpr int64_t kIterations = 400'000;  // about 2 ms, so waking the threads does not matter

}  // namespace

FmaPeak::FmaPeak() {
  double best = 0;
  for (const auto& width : runner::MeasurePeak(omp_get_max_threads()).widths) {
    if (width.gflops_all_cores <= best) continue;
    best = width.gflops_all_cores;
    width_bits_ = width.vector_bits;
  }
}

absl::Status FmaPeak::Run() {
  double flops = 0;
#pragma omp parallel reduction(+ : flops)
  flops += runner::RunFma(width_bits_, kIterations);
  flops_ = flops;
  return absl::OkStatus();
}

}  // namespace hone::compare
