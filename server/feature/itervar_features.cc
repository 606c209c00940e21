#include "server/feature/itervar_features.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/feature/logarithm.h"
#include "server/feature/nest.h"
#include "server/feature/touch.h"

namespace hone::feature {
namespace {

constexpr int kShape = 4;
constexpr int kKinds = 12;
constexpr int kArithmetic = 3;
constexpr int kPerTouch = 6;
constexpr int kPerLoop = kShape + kKinds + kArithmetic + kItervarTouches * kPerTouch;

// The position of a loop's kind among the one-hot columns: the thread axes in their order, then the
// rest.
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

std::vector<std::string> MakeNames() {
  std::vector<std::string> names;
  for (int loop = 0; loop < kItervarLoops; ++loop) {
    const std::string prefix = absl::StrCat("loop", loop, ".");
    for (const char* what : {"length", "nest_level", "topdown", "bottomup", "block_x", "block_y",
                             "block_z", "thread_x", "thread_y", "thread_z", "vthread", "unrolled",
                             "vectorized", "parallel", "serial", "tensor", "add", "mul", "div"})
      names.push_back(absl::StrCat(prefix, what));
    for (int touch = 0; touch < kItervarTouches; ++touch) {
      for (const char* what : {"stride", "mod", "count", "reuse", "thread_count", "thread_reuse"})
        names.push_back(absl::StrCat(prefix, "touch", touch, ".", what));
    }
  }
  return names;
}

// The block of columns of every loop met so far, raw until Finish.
class LoopBlocks {
 public:
  LoopBlocks(const ir::Program& program, float* row) : program_(program), row_(row) {}

  void Add(const Statement& statement) {
    blocks_.clear();
    double topdown = 1;
    for (size_t d = 0; d < statement.loops.size(); ++d) {
      topdown *= static_cast<double>(statement.loops[d].extent);
      blocks_.push_back(BlockOf(statement, d, topdown));
    }
    if (!blocks_.empty() && blocks_.back() >= 0) {
      const OpCounts ops = CountOps(program_, *statement.block, /*detect_mad=*/false);
      float* out = row_ + blocks_.back() * kPerLoop + kShape + kKinds;
      out[0] += static_cast<float>(ops.floating.addsub + ops.integer.addsub);
      out[1] += static_cast<float>(ops.floating.mul + ops.integer.mul);
      out[2] += static_cast<float>(ops.floating.divmod + ops.integer.divmod);
    }
    for (const Access& access : statement.accesses) AddTouches(statement, access);
  }

  void Finish() {
    for (size_t i = 0; i < loops_.size(); ++i) {
      float* out = row_ + i * kPerLoop + kShape + kKinds;
      for (int c = 0; c < kArithmetic; ++c) out[c] = SignedLog2(out[c]);
    }
  }

 private:
  // -1: the row is full.
  int BlockOf(const Statement& statement, size_t depth, double topdown) {
    const NestLoop& loop = statement.loops[depth];
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i].node != loop.node) continue;
      float& bottomup = row_[i * kPerLoop + 3];
      bottomup = std::max(bottomup, SignedLog2(statement.executions[depth]));
      return static_cast<int>(i);
    }
    if (loops_.size() == kItervarLoops) return -1;
    float* out = row_ + loops_.size() * kPerLoop;
    out[0] = SignedLog2(static_cast<double>(loop.extent));
    out[1] = static_cast<float>(depth + 1);
    out[2] = SignedLog2(topdown);
    out[3] = SignedLog2(statement.executions[depth]);
    out[kShape + KindOf(loop)] = 1;
    loops_.push_back({loop.node, 0});
    return static_cast<int>(loops_.size()) - 1;
  }

  void AddTouches(const Statement& statement, const Access& access) {
    TouchesOf(statement, access, touches_);
    for (size_t d = 0; d < blocks_.size(); ++d) {
      if (blocks_[d] < 0 || loops_[blocks_[d]].touches == kItervarTouches) continue;
      float* out = row_ + blocks_[d] * kPerLoop + kShape + kKinds + kArithmetic +
                   loops_[blocks_[d]].touches++ * kPerTouch;
      const Touch& touch = touches_[d];
      const auto stride =
          static_cast<double>(StrideOf(program_, statement, access, static_cast<int>(d)));
      for (const double value :
           {stride, -1.0, touch.count, touch.reuse, touch.thread_count, touch.thread_reuse})
        *out++ = SignedLog2(value);
    }
  }

  struct Loop {
    ir::NodeId node;
    int touches;
  };

  const ir::Program& program_;
  float* const row_;
  absl::InlinedVector<Loop, kItervarLoops> loops_;
  absl::InlinedVector<int, 24> blocks_;  // of the statement's loops
  absl::InlinedVector<Touch, 24> touches_;
};

class ItervarFeatureSet final : public FeatureSet {
 public:
  absl::string_view name() const override { return "itervar"; }
  int Columns() const override { return kItervarLoops * kPerLoop; }
  const std::vector<std::string>& ColumnNames() const override {
    static const auto* names = new std::vector<std::string>(MakeNames());
    return *names;
  }

  absl::Status Extract(const ir::Program& program, const target::Target&,
                       std::vector<float>& rows_out, int& row_count) const override {
    thread_local Nest nest;  // keeps its memory from candidate to candidate
    HONE_RETURN_IF_ERROR(AnalyzeBlocks(program, nest));
    const size_t begin = rows_out.size();
    rows_out.resize(begin + Columns(), 0.0f);
    LoopBlocks blocks(program, rows_out.data() + begin);
    for (const Statement& statement : nest.statements()) blocks.Add(statement);
    blocks.Finish();
    row_count = 1;
    return absl::OkStatus();
  }
};

}  // namespace

const FeatureSet& ItervarFeatures() {
  static const auto* set = new ItervarFeatureSet;
  return *set;
}

}  // namespace hone::feature
