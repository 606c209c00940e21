#ifndef HONE_SERVER_RESEARCH_FEATURE_LOOP_BLOCKS_H_
#define HONE_SERVER_RESEARCH_FEATURE_LOOP_BLOCKS_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "server/research/feature/touch.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {

// AutoTVM's features of one loop (Chen et al., NeurIPS 2018); numbers as sign(x)·log2(|x| + 1):
//    4  length, nest level (as it is), product of the lengths from the outside and from the inside
//   12  kind of the loop, one-hot: GPU axes, unrolled, vectorized, parallel, serial, tensor (ours)
//    3  additions, multiplications, divisions of the statements whose innermost loop it is
//  8×6  per access under the loop: stride, mod, count, reuse, thread_count, thread_reuse (touch.h)
inline constexpr int kLoopTouches = 8;
inline constexpr int kLoopColumns = 4 + 12 + 3 + kLoopTouches * 6;
std::vector<std::string> LoopColumnNames();

// Appends a block of columns for each loop of a program to a vector of floats, in order of first
// appearance, so that a loop comes after its enclosing loops. Each block follows `lead` columns
// that are left 0.
class LoopBlocks {
 public:
  // Appends the blocks of all statements to `out`, for at most `max_loops` loops. The nest and
  // `out` must outlive this object.
  LoopBlocks(const Nest& nest, int max_loops, int lead, std::vector<float>& out);

  int count() const { return static_cast<int>(loops_.size()); }
  // Returns the loop directly around a loop; -1: none.
  int parent(int loop) const { return loops_[loop].parent; }

 private:
  struct Loop {
    ir::NodeId node;
    int parent;
    int touches;
  };

  void Add(const Statement& statement);
  float* Block(int loop) { return out_.data() + begin_ + loop * (lead_ + kLoopColumns) + lead_; }
  int BlockOf(const Statement& statement, size_t depth, double topdown);
  void AddTouches(const Statement& statement, const Access& access);

  const ir::Program& program_;
  const int max_loops_;
  const int lead_;
  const size_t begin_;
  std::vector<float>& out_;
  absl::InlinedVector<Loop, 32> loops_;
  absl::InlinedVector<int, 24> blocks_;  // of the current statement's loops; -1: left out
  absl::InlinedVector<Touch, 24> touches_;
};

}  // namespace hone::feature

#endif  // HONE_SERVER_RESEARCH_FEATURE_LOOP_BLOCKS_H_
