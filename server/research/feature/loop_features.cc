#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/research/feature/feature_sets.h"
#include "server/research/feature/touch.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

// AutoTVM's features of one loop (Chen et al., NeurIPS 2018); numbers as sign(x)·log2(|x| + 1):
//    4  length, nest level (as it is), product of the lengths from the outside and from the inside
//   12  kind of the loop, one-hot: GPU axes, unrolled, vectorized, parallel, serial, tensor (ours)
//    3  additions, multiplications, divisions of the statements whose innermost loop it is
//  8×6  per access under the loop: stride, mod, count, reuse, thread_count, thread_reuse (touch.h)
inline constexpr int kLoopTouches = 8;
inline constexpr int kLoopColumns = 4 + 12 + 3 + kLoopTouches * 6;

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

constexpr int kShape = 4;
constexpr int kKinds = 12;
constexpr int kArithmetic = 3;
constexpr int kPerTouch = 6;
static_assert(kLoopColumns == kShape + kKinds + kArithmetic + kLoopTouches * kPerTouch);

// Returns the index of a loop's kind among the one-hot columns: the thread axes first, then the
// others.
int KindOf(const NestLoop& loop) {
  if (loop.axis != ir::ThreadAxis::kNone) return static_cast<int>(loop.axis) - 1;
  switch (loop.kind) {
    case ir::LoopKind::kUnrolled:
      return 7;
    case ir::LoopKind::kVectorized:
      return 8;
    case ir::LoopKind::kParallel:
      return 9;
    case ir::LoopKind::kSerial:
    case ir::LoopKind::kBound:
      return 10;
    case ir::LoopKind::kTensor:
      return 11;
  }
  return 10;
}

std::vector<std::string> LoopColumnNames() {
  std::vector<std::string> names = {"length",  "nest_level", "topdown",    "bottomup", "block_x",
                                    "block_y", "block_z",    "thread_x",   "thread_y", "thread_z",
                                    "vthread", "unrolled",   "vectorized", "parallel", "serial",
                                    "tensor",  "add",        "mul",        "div"};
  for (int touch = 0; touch < kLoopTouches; ++touch) {
    for (const char* what : {"stride", "mod", "count", "reuse", "thread_count", "thread_reuse"})
      names.push_back(absl::StrCat("touch", touch, ".", what));
  }
  return names;
}

LoopBlocks::LoopBlocks(const Nest& nest, int max_loops, int lead, std::vector<float>& out)
    : program_(nest.program()), max_loops_(max_loops), lead_(lead), begin_(out.size()), out_(out) {
  for (const Statement& statement : nest.statements()) Add(statement);
  for (int i = 0; i < count(); ++i) {
    float* arithmetic = Block(i) + kShape + kKinds;
    for (int c = 0; c < kArithmetic; ++c) arithmetic[c] = SignedLog2(arithmetic[c]);
  }
}

void LoopBlocks::Add(const Statement& statement) {
  blocks_.clear();
  double topdown = 1;
  for (size_t d = 0; d < statement.loops.size(); ++d) {
    topdown *= static_cast<double>(statement.loops[d].extent);
    blocks_.push_back(BlockOf(statement, d, topdown));
  }
  if (!blocks_.empty() && blocks_.back() >= 0) {
    const OpCounts ops = CountOps(program_, *statement.block, /*detect_mad=*/false);
    float* out = Block(blocks_.back()) + kShape + kKinds;
    out[0] += static_cast<float>(ops.floating.addsub + ops.integer.addsub);
    out[1] += static_cast<float>(ops.floating.mul + ops.integer.mul);
    out[2] += static_cast<float>(ops.floating.divmod + ops.integer.divmod);
  }
  for (const Access& access : statement.accesses) AddTouches(statement, access);
}

int LoopBlocks::BlockOf(const Statement& statement, size_t depth, double topdown) {
  const NestLoop& loop = statement.loops[depth];
  for (int i = 0; i < count(); ++i) {
    if (loops_[i].node != loop.node) continue;
    float& bottomup = Block(i)[3];
    bottomup = std::max(bottomup, SignedLog2(statement.executions[depth]));
    return i;
  }
  if (count() == max_loops_) return -1;
  loops_.push_back({loop.node, depth == 0 ? -1 : blocks_[depth - 1], 0});
  out_.resize(out_.size() + lead_ + kLoopColumns, 0.0f);
  float* out = Block(count() - 1);
  out[0] = SignedLog2(static_cast<double>(loop.extent));
  out[1] = static_cast<float>(depth + 1);
  out[2] = SignedLog2(topdown);
  out[3] = SignedLog2(statement.executions[depth]);
  out[kShape + KindOf(loop)] = 1;
  return count() - 1;
}

void LoopBlocks::AddTouches(const Statement& statement, const Access& access) {
  TouchesOf(statement, access, touches_);
  for (size_t d = 0; d < blocks_.size(); ++d) {
    if (blocks_[d] < 0 || loops_[blocks_[d]].touches == kLoopTouches) continue;
    float* out = Block(blocks_[d]) + kShape + kKinds + kArithmetic +
                 loops_[blocks_[d]].touches++ * kPerTouch;
    const Touch& touch = touches_[d];
    const auto stride =
        static_cast<double>(StrideOf(program_, statement, access, static_cast<int>(d)));
    for (const double value :
         {stride, -1.0, touch.count, touch.reuse, touch.thread_count, touch.thread_reuse})
      *out++ = SignedLog2(value);
  }
}

constexpr int kItervarLoops = 32;
constexpr int kTreeLoops = 256;
constexpr int kTreeColumns = 1 + kLoopColumns;

void DescribeLoops(const Nest& nest, const target::Target&, std::vector<float>& rows_out) {
  const size_t begin = rows_out.size();
  LoopBlocks blocks(nest, kItervarLoops, /*lead=*/0, rows_out);
  rows_out.resize(begin + kItervarLoops * kLoopColumns, 0.0f);
}

void DescribeTree(const Nest& nest, const target::Target&, std::vector<float>& rows_out) {
  const size_t begin = rows_out.size();
  const LoopBlocks blocks(nest, kTreeLoops, /*lead=*/1, rows_out);
  const int rows = std::max(blocks.count(), 1);
  rows_out.resize(begin + static_cast<size_t>(rows) * kTreeColumns, 0.0f);
  for (int row = 0; row < rows; ++row) {
    rows_out[begin + row * kTreeColumns + kTreeParentColumn] =
        blocks.count() == 0 ? -1.0f : static_cast<float>(blocks.parent(row));
  }
}

}  // namespace

std::unique_ptr<FeatureSet> MakeItervarFeatures() {
  std::vector<std::string> names;
  for (int loop = 0; loop < kItervarLoops; ++loop) {
    for (const std::string& name : LoopColumnNames())
      names.push_back(absl::StrCat("loop", loop, ".", name));
  }
  return std::make_unique<FeatureSet>("itervar", std::move(names), DescribeLoops);
}

std::unique_ptr<FeatureSet> MakeTreeFeatures() {
  std::vector<std::string> names = LoopColumnNames();
  names.insert(names.begin() + kTreeParentColumn, "parent");
  return std::make_unique<FeatureSet>("tree", std::move(names), DescribeTree);
}

}  // namespace hone::feature
