#ifndef HONE_SERVER_FEATURE_NEST_H_
#define HONE_SERVER_FEATURE_NEST_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::feature {

// Loops around a block that an analysis takes; their set is one machine word.
inline constexpr int kMaxLoops = 64;

// Where a loop acts: on which kind of iteration variables of the block, and which among them.
enum class Position : uint8_t {
  kNone,
  kInnerSpatial,
  kMiddleSpatial,
  kOuterSpatial,
  kInnerReduce,
  kMiddleReduce,
  kOuterReduce,
  kMixed,
};
inline constexpr int kPositions = 8;

struct NestLoop {
  ir::NodeId node = ir::kNoNode;
  ir::AtomId var = ir::kNoAtom;
  int64_t extent = 1;
  ir::LoopKind kind = ir::LoopKind::kSerial;
  ir::ThreadAxis axis = ir::ThreadAxis::kNone;
  bool reduce = false;  // a reduction variable of the block depends on it
  Position position = Position::kNone;
};

enum class AccessKind : uint8_t { kRead, kWrite, kReadWrite };

// All that one block does to one buffer.
struct Access {
  ir::BufferId buffer = -1;
  AccessKind kind = AccessKind::kRead;
  int element_bytes = 4;
  absl::InlinedVector<const ir::IndexList*, 2>
      indices;          // of the program analyzed: one per place in the block
  uint64_t varies = 0;  // bit d: some index depends on loop d
  // Elements touched while the loops d, d + 1, … run and those outside stand still; one more entry
  // than loops, the last 1.
  absl::InlinedVector<double, 24> touched;
  std::vector<int64_t> boxes;  // see Box; depth by depth

  // Extents of the box that is touched while the loops from `depth` inwards run, one per dimension
  // of the buffer.
  absl::Span<const int64_t> Box(int depth) const {
    const size_t rank = indices[0]->size();
    return absl::MakeConstSpan(boxes).subspan(depth * rank, rank);
  }
};

// What one execution of the block computes. A multiply whose result is added right away is a `mad`
// if asked for.
struct OpCounts {
  struct Arithmetic {
    int mad = 0, addsub = 0, mul = 0, divmod = 0, cmp = 0, math = 0, other = 0;
  };
  Arithmetic floating, integer;
  int boolean = 0, select = 0;
};

// A block and the loops around it.
struct Statement {
  ir::NodeId node = ir::kNoNode;
  ir::NodeId kernel = ir::kNoNode;
  const ir::Block* block = nullptr;         // of the program analyzed
  absl::InlinedVector<NestLoop, 24> loops;  // outermost first
  absl::InlinedVector<Access, 4> accesses;  // outputs first, then by first load
  // Executions while the loops d, d + 1, … run; one more entry than loops, the last 1. Predicated
  // ones count.
  absl::InlinedVector<double, 24> executions;
  OpCounts ops;  // of one execution, multiply-adds as such

  const Access* Find(ir::BufferId buffer) const;
  // Bytes of all accesses while the loops d, d + 1, … run.
  double TouchedBytes(size_t d) const;
};

// sign(x)·log2(|x| + 1), the scale of nearly every column.
inline float SignedLog2(double x) {
  return static_cast<float>(x < 0 ? -std::log2(1 - x) : std::log2(1 + x));
}

// The statements of a program with what they touch, in order of execution, prepack kernel left out.
// Points into the program: valid as long as it lives unchanged. Reusable: Analyze keeps the memory.
// Used by one thread at a time.
class Nest {
 public:
  // InvalidArgument: a block has more than kMaxLoops loops around it.
  absl::Status Analyze(const ir::Program& program);

  absl::Span<const Statement> statements() const {
    return absl::MakeConstSpan(statements_).first(count_);
  }
  const ir::Program& program() const { return *program_; }

 private:
  absl::Status Visit(ir::NodeId node, ir::NodeId kernel);
  void Describe(Statement& statement);
  void DescribeIters(Statement& statement);
  void DescribeAccesses(Statement& statement);
  // The range of an iteration variable while the loops from `depth` inwards run.
  ir::Range RangeOfIter(const ir::BlockIter& iter, int depth) const;
  // How wide an access is along one dimension, at the ranges at hand.
  int64_t ExtentOf(const Access& access, size_t dim) const;

  const ir::Program* program_ = nullptr;
  std::vector<Statement> statements_;
  size_t count_ = 0;
  absl::InlinedVector<ir::NodeId, 32> path_;
  // Per atom, of the statement at hand: the depth of a loop's variable, else -1; the loops that an
  // iteration variable depends on, else none, and its range at the depth at hand.
  std::vector<int32_t> depth_of_;
  std::vector<uint64_t> loops_of_;
  std::vector<ir::Range> range_of_;
  // Of the accesses of the statement at hand, dimension by dimension: the loops it depends on.
  std::vector<uint64_t> dimension_loops_;
};

// How many of the outermost loops are around all statements that use a buffer, `statement` among
// them: where the buffer lives.
size_t DepthOfUsers(const Nest& nest, const Statement& statement, ir::BufferId buffer);

// Elements that one step of loop `depth` moves the access on, by the innermost dimension that
// moves; the smallest over its places. 0: it does not move.
int64_t StrideOf(const ir::Program& program, const Statement& statement, const Access& access,
                 int depth);

OpCounts CountOps(const ir::Program& program, const ir::Block& block, bool detect_mad);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_NEST_H_
