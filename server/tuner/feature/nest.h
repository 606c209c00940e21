#ifndef HONE_SERVER_TUNER_FEATURE_NEST_H_
#define HONE_SERVER_TUNER_FEATURE_NEST_H_

#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::feature {

// The maximum number of loops around a block. A set of them is one machine word.
inline constexpr int kMaxLoops = 64;

// Which of the block's iteration variables a loop affects: their kind, and their position among
// that kind.
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
  bool reduce = false;  // a reduction variable depends on it
  Position position = Position::kNone;
};

enum class AccessKind : uint8_t { kRead, kWrite, kReadWrite };

// All accesses of one block to one buffer.
struct Access {
  ir::BufferId buffer = -1;
  AccessKind kind = AccessKind::kRead;
  int element_bytes = 4;
  absl::InlinedVector<const ir::IndexList*, 2>
      indices;          // of the analyzed program; one per access in the block
  uint64_t varies = 0;  // bit d: an index depends on loop d
  // touched[d] is the number of elements touched in one run of the loops d, d + 1, …. It has one
  // more entry than there are loops; the last is 1.
  absl::InlinedVector<double, 24> touched;
  std::vector<int64_t> boxes;  // see Box; by depth

  // Returns the extents of the box that is touched while the loops from `depth` inwards run, one
  // per dimension of the buffer.
  absl::Span<const int64_t> Box(int depth) const {
    const size_t rank = indices[0]->size();
    return absl::MakeConstSpan(boxes).subspan(depth * rank, rank);
  }
};

// The operations of one execution of a block. With detect_mad, a product that is immediately added
// counts as one `mad`.
struct OpCounts {
  struct Arithmetic {
    int mad = 0, addsub = 0, mul = 0, divmod = 0, cmp = 0, math = 0, other = 0;

    Arithmetic& operator+=(const Arithmetic& more);
  };
  Arithmetic floating, integer;
  Arithmetic whole, index;  // the parts of `integer`: on values, and to compute indices
  int boolean = 0, select = 0;
  int casts = 0;  // conversions between types, which are also counted as `other`
};

// A block and the loops around it.
struct Statement {
  ir::NodeId node = ir::kNoNode;
  ir::NodeId kernel = ir::kNoNode;
  const ir::Block* block = nullptr;         // of the analyzed program
  absl::InlinedVector<NestLoop, 24> loops;  // outermost first
  // Bit d of an entry: the binding of the block's iteration variable depends on loop d.
  absl::InlinedVector<uint64_t, 8> iter_loops;
  absl::InlinedVector<Access, 4> accesses;  // outputs, then inputs in order of their first load
  // executions[d] is the number of executions in one run of the loops d, d + 1, …, including those
  // whose predicate is false. It has one more entry than there are loops; the last is 1.
  absl::InlinedVector<double, 24> executions;
  // touched_bytes[d] is the number of bytes that all accesses touch in one run of the loops d, d +
  // 1, …. It has one more entry than there are loops.
  absl::InlinedVector<double, 24> touched_bytes;
  OpCounts ops;  // of one execution, with detect_mad

  const Access* Find(ir::BufferId buffer) const;
};

// Returns sign(x)·log2(|x| + 1), the scale of nearly every column.
inline float SignedLog2(double x) {
  if (x == 0) return 0;  // most columns of most rows
  return static_cast<float>(x < 0 ? -std::log2(1 - x) : std::log2(1 + x));
}

// The statements of a program and their accesses, in order of execution, without the prepack
// kernel. Points into the program, which must outlive this and not change. Analyze may be called
// again and reuses the memory. Used by one thread at a time.
class Nest {
 public:
  // InvalidArgument: a block is inside more than kMaxLoops loops.
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
  // Returns substitute indices for a gather. The computed index is replaced by the sum of the
  // indices of the elements that it reads, so that the access depends on the same loops.
  const ir::IndexList* IndicesOfGather(const ir::Expr& load);
  // Returns the range of an iteration variable while the loops from `depth` inwards run.
  ir::Range RangeOfIter(const ir::BlockIter& iter, int depth) const;
  // Returns the extent of an access along one dimension for the current ranges.
  int64_t ExtentOf(const Access& access, size_t dim) const;

  const ir::Program* program_ = nullptr;
  std::vector<Statement> statements_;
  size_t count_ = 0;
  absl::InlinedVector<ir::NodeId, 32> path_;
  // Per atom, for the current statement: the depth of a loop variable, or -1; the loops that an
  // iteration variable depends on, or none; and its range at the current depth.
  std::vector<int32_t> depth_of_;
  std::vector<uint64_t> loops_of_;
  std::vector<ir::Range> range_of_;
  // The loops that each dimension of each access of the current statement depends on.
  std::vector<uint64_t> dimension_loops_;
  std::deque<ir::IndexList> gathers_;
};

// Returns the number of outermost loops that all users of a buffer share, including `statement`.
// The buffer is allocated at this depth.
size_t DepthOfUsers(const Nest& nest, const Statement& statement, ir::BufferId buffer);

// Returns by how many elements one step of loop `depth` moves the access, in the innermost
// dimension that moves. If the block has several accesses to the buffer, the smallest counts. 0:
// the loop does not move the access.
int64_t StrideOf(const ir::Program& program, const Statement& statement, const Access& access,
                 int depth);

OpCounts CountOps(const ir::Program& program, const ir::Block& block, bool detect_mad);

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_NEST_H_
