#include "server/service/peaks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/record/proto_convert.h"

namespace hone::service {
namespace {

struct Peaks {
  double gflops = 0;  // 0: unknown
  double read_gbps = 0;
};

Peaks OfWorkers(const fleet::Fleet& fleet, const std::string& target) {
  const std::optional<fleet::Capabilities> device = fleet.DeviceOf(target);
  if (!device.has_value()) return {};
  return {.gflops = device->peak_gflops, .read_gbps = device->read_gbps};
}

void Raise(const v1::Best& best, Peaks& peaks) {
  peaks.gflops = std::max(peaks.gflops, best.peak_gflops());
  peaks.read_gbps = std::max(peaks.read_gbps, best.read_gbps());
}

void Set(const Peaks& peaks, v1::Best& best) {
  if (best.peak_gflops() > 0) best.set_peak_gflops(peaks.gflops);
  best.set_read_gbps(peaks.read_gbps);
}

}  // namespace

void SetPeaks(const fleet::Fleet& fleet, v1::Job& job) {
  Peaks peaks = OfWorkers(fleet, job.target());
  std::vector<v1::Best*> bests;
  if (job.has_best()) bests.push_back(job.mutable_best());
  if (job.has_default_schedule()) bests.push_back(job.mutable_default_schedule());
  if (job.has_given()) bests.push_back(job.mutable_given());
  if (job.has_own_best()) bests.push_back(job.mutable_own_best());
  for (const v1::Best* best : bests) Raise(*best, peaks);
  for (v1::Best* best : bests) Set(peaks, *best);
  if (!job.has_network()) return;
  for (const v1::NetworkTaskProgress& task : job.network().tasks()) {
    peaks.gflops = std::max(peaks.gflops, task.peak_gflops());
  }
  for (v1::NetworkTaskProgress& task : *job.mutable_network()->mutable_tasks()) {
    if (task.peak_gflops() > 0) task.set_peak_gflops(peaks.gflops);
  }
}

void SetPeaks(const fleet::Fleet& fleet, const job::WorkloadInfo& workload, v1::Best& best) {
  Peaks peaks = OfWorkers(fleet, best.record().target());
  Raise(best, peaks);
  if (const auto record = record::FromProto(best.record()); record.ok() && peaks.gflops > 0) {
    peaks.gflops = std::max(peaks.gflops, job::LeastPeakOf(workload, *record));
  }
  best.set_peak_gflops(workload.has_fma_peak ? peaks.gflops : 0);
  best.set_read_gbps(peaks.read_gbps);
}

}  // namespace hone::service
