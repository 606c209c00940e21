#include "common/ir/roofline.h"

namespace hone::ir {

Roofline RooflineOf(const Workload& workload, const MeasuredSpeed& speed) {
  Roofline roofline{
      .flops = FlopCount(workload), .peak_gflops = speed.peak_gflops, .read_gbps = speed.read_gbps};
  for (const Tensor& tensor : workload.tensors) {
    if (tensor.input || tensor.output) roofline.bytes += static_cast<double>(tensor.bytes());
  }
  roofline.gflops = roofline.peak_gflops;
  if (roofline.read_gbps > 0 && roofline.bytes > 0) {
    const double memory = roofline.read_gbps * roofline.flops / roofline.bytes;
    const bool is_limit = roofline.peak_gflops > 0 && memory < roofline.peak_gflops;
    roofline.cache_bound = is_limit && speed.gflops > memory;
    roofline.memory_bound = is_limit && !roofline.cache_bound;
    if (is_limit) roofline.gflops = roofline.cache_bound ? 0 : memory;
  }
  return roofline;
}

const char* BoundOf(const Roofline& roofline) {
  return roofline.cache_bound ? "cache" : roofline.memory_bound ? "memory" : "compute";
}

}  // namespace hone::ir
