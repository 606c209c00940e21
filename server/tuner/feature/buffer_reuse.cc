#include "server/tuner/feature/buffer_reuse.h"

#include <algorithm>

namespace hone::feature {

void LoopTraffic::Clear(const ir::Program& program) { bytes_.assign(program.nodes.size(), 0.0); }

void LoopTraffic::Add(const Statement& statement) {
  for (size_t d = 0; d < statement.loops.size(); ++d)
    bytes_[statement.loops[d].node] += statement.TouchedBytes(d);
}

Reuse ReuseOf(const Statement& statement, const Access& access, absl::Span<const Statement> others,
              const LoopTraffic& traffic) {
  double iterations = 1, bytes = -1;
  for (int d = static_cast<int>(statement.loops.size()) - 1; d >= 0; --d) {
    const NestLoop& loop = statement.loops[d];
    const auto extent = static_cast<double>(loop.extent);
    if ((access.varies >> d & 1) == 0) {
      if (bytes < 0) {  // the innermost loop: two uses are one execution apart
        bytes = 0;
        for (const Access& each : statement.accesses) bytes += each.element_bytes;
      }
      return {ReuseKind::kLoop, iterations, bytes, extent};
    }
    iterations *= extent;
    bytes = traffic.bytes(loop.node);
    double uses = 0, nearest = access.touched[d];
    for (const Statement& other : others) {
      if (other.node == statement.node || static_cast<int>(other.loops.size()) <= d ||
          other.loops[d].node != loop.node)
        continue;
      if (const Access* same = other.Find(access.buffer)) {
        ++uses;
        nearest = std::min(nearest, same->touched[d]);
      }
    }
    if (uses > 0) return {ReuseKind::kSerial, nearest / extent, bytes / extent, uses};
  }
  return {};
}

Lines LinesOf(const Nest& nest, const Statement& statement, const Access& access, int line_bytes,
              bool repeat_innermost) {
  const ir::Program& program = nest.program();
  const int loops = static_cast<int>(statement.loops.size());
  if (loops == 0) return {};
  Lines result;
  double repeated = 1;
  int64_t stride = 0;
  int at = loops - 1;
  for (; at >= 0; --at) {
    stride = StrideOf(program, statement, access, at);
    if (stride != 0) break;
    repeated *= static_cast<double>(statement.loops[repeat_innermost ? loops - 1 : at].extent);
  }
  const double line = line_bytes;
  result.lines = statement.executions[0] / repeated *
                 std::min(1.0, static_cast<double>(stride * access.element_bytes) / line);
  result.lines = std::max(result.lines, 1.0);
  if (at == loops - 1) result.stride = stride;

  const absl::Span<const int64_t> box = access.Box(0);
  const ir::Shape& shape = program.buffers[access.buffer].shape;
  double run = access.element_bytes;
  for (size_t dim = box.size(); dim-- > 0;) {
    run *= static_cast<double>(box[dim]);
    if (box[dim] != shape[dim]) break;
  }
  result.unique = std::max(1.0, access.touched[0] * access.element_bytes / std::min(run, line));
  return result;
}

}  // namespace hone::feature
