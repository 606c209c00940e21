#ifndef HONE_SERVER_FEATURE_BUFFER_REUSE_H_
#define HONE_SERVER_FEATURE_BUFFER_REUSE_H_

#include <vector>

#include "absl/types/span.h"
#include "server/feature/nest.h"

namespace hone::feature {

enum class ReuseKind : uint8_t { kLoop, kSerial, kNone };
inline constexpr int kReuseKinds = 3;

// When a statement meets the same element again: after how many executions and touched bytes, and
// how often.
struct Reuse {
  ReuseKind kind = ReuseKind::kNone;
  double distance_iterations = 0;
  double distance_bytes = 0;
  double count = 0;
};

// Bytes that all statements under each loop touch in one run of it. Reusable.
class LoopTraffic {
 public:
  void Clear(const ir::Program& program);
  void Add(const Statement& statement);
  double bytes(ir::NodeId loop) const { return bytes_[loop]; }

 private:
  std::vector<double> bytes_;  // per node
};

// The first reason for reuse from the innermost loop outwards: a loop that the access does not vary
// with repeats it (kLoop), or another of `others` under the loop touches the same buffer (kSerial).
// `others` may hold the statement.
Reuse ReuseOf(const Statement& statement, const Access& access, absl::Span<const Statement> others,
              const LoopTraffic& traffic);

// Cache lines of an access over the whole nest, and how many different ones.
struct Lines {
  double lines = 1;
  double unique = 1;
  int64_t stride = 0;  // of the innermost loop, in elements
};
// `repeat_innermost`: divide by the innermost extent for each loop without a stride, as public code
// does.
Lines LinesOf(const Nest& nest, const Statement& statement, const Access& access, int line_bytes,
              bool repeat_innermost);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_BUFFER_REUSE_H_
