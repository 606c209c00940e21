#ifndef HONE_SERVER_TUNER_FEATURE_BUFFER_REUSE_H_
#define HONE_SERVER_TUNER_FEATURE_BUFFER_REUSE_H_

#include <vector>

#include "absl/types/span.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {

enum class ReuseKind : uint8_t { kLoop, kSerial, kNone };
inline constexpr int kReuseKinds = 3;

// The reuse of an element: after how many executions and touched bytes it is accessed again, and
// how often.
struct Reuse {
  ReuseKind kind = ReuseKind::kNone;
  double distance_iterations = 0;
  double distance_bytes = 0;
  double count = 0;
};

// The bytes that all statements under a loop touch in one run of that loop. Can be reused for other
// programs after Clear.
class LoopTraffic {
 public:
  void Clear(const ir::Program& program);
  void Add(const Statement& statement);
  double bytes(ir::NodeId loop) const { return bytes_[loop]; }

 private:
  std::vector<double> bytes_;  // per node
};

// Returns the first reason for reuse, from the innermost loop outwards: the access does not vary
// with a loop, which therefore repeats it (kLoop), or another statement of `others` under the loop
// touches the same buffer (kSerial). `others` may contain the statement itself.
Reuse ReuseOf(const Statement& statement, const Access& access, absl::Span<const Statement> others,
              const LoopTraffic& traffic);

// The number of cache lines that an access touches over the whole nest, and the number of distinct
// ones.
struct Lines {
  double lines = 1;
  double unique = 1;
  int64_t stride = 0;  // of the innermost loop, in elements
};
// `repeat_innermost`: for each loop without a stride, divide by the innermost extent instead of the
// loop's own, as the public code does.
Lines LinesOf(const Nest& nest, const Statement& statement, const Access& access, int line_bytes,
              bool repeat_innermost);

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_BUFFER_REUSE_H_
