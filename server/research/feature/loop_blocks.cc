#include "server/research/feature/loop_blocks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hone::feature {
namespace {

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

}  // namespace

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

}  // namespace hone::feature
