#include "server/tuner/space/plain_nest.h"

namespace hone::space {

using schedule::Operand;

void SchedulePlainNest(schedule::TraceBuilder& trace, const Operand& block_register,
                       const ir::Block& block, int64_t lanes, bool sampled) {
  const int iters = static_cast<int>(block.iters.size());
  if (iters == 0) return;
  const std::vector<Operand> loops = trace.Add("loops", {block_register}, {}, iters);
  std::vector<int> spatial;
  std::vector<Operand> reductions;
  for (int i = 0; i < iters; ++i) {
    if (block.iters[i].reduce) {
      reductions.push_back(loops[i]);
    } else {
      spatial.push_back(i);
    }
  }
  if (spatial.empty()) return;  // one element: nothing to parallelize
  const int last = spatial.back();
  spatial.pop_back();
  std::vector<Operand> outer;
  for (int axis : spatial) outer.push_back(loops[axis]);

  const int64_t extent = block.iters[last].extent;
  std::vector<Operand> inner = {loops[last]};
  std::vector<Operand> unrolled;
  if (extent > lanes) {
    constexpr int64_t kVectors[] = {1, 2, 4, 8};
    std::vector<int64_t> candidates;
    for (int64_t vectors : kVectors) {
      if (vectors * lanes <= extent) candidates.push_back(vectors);
    }
    if (sampled && reductions.empty() && candidates.size() > 1) {
      const Operand vectors = trace.Add("sample_categorical", {}, {{"candidates", candidates}})[0];
      const std::vector<Operand> parts = trace.Add(
          "split", {loops[last], schedule::Number(0), vectors, schedule::Number(lanes)}, {}, 3);
      outer.push_back(parts[0]);
      unrolled.push_back(parts[1]);
      inner = {parts[1], parts[2]};
    } else {
      const std::vector<Operand> parts =
          trace.Add("split", {loops[last], schedule::Number(0), schedule::Number(lanes)}, {}, 2);
      outer.push_back(parts[0]);
      inner = {parts[1]};
    }
  }
  std::vector<Operand> order = outer;
  order.insert(order.end(), reductions.begin(), reductions.end());
  order.insert(order.end(), inner.begin(), inner.end());
  if (order.size() > 1) trace.Add("reorder", order);
  for (const Operand& loop : unrolled) trace.Add("unroll", {loop});
  trace.Add("vectorize", {inner.back()});
  if (outer.empty()) return;
  Operand fused = outer.size() > 1 ? trace.Add("fuse", outer)[0] : outer[0];
  if (sampled) {
    const std::vector<Operand> sizes = trace.Add("sample_tile", {fused}, {{"parts", {2}}});
    fused = trace.Add("split", {fused, sizes[0], sizes[1]}, {}, 2)[0];
  }
  trace.Add("parallel", {fused});
}

}  // namespace hone::space
