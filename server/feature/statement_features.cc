#include "server/feature/statement_features.h"

#include <algorithm>
#include <numeric>

#include "common/base/status_macros.h"
#include "server/feature/buffer_reuse.h"
#include "server/feature/logarithm.h"
#include "server/feature/nest.h"
#include "server/feature/statement_columns.h"

namespace hone::feature {
namespace {

// Fills one row.
class RowWriter {
 public:
  RowWriter(const Nest& nest, const LoopTraffic& traffic, const target::Target& target,
            StatementVariant variant, float* row)
      : nest_(nest),
        traffic_(traffic),
        target_(target),
        original_(variant == StatementVariant::kOriginal),
        row_(row) {}

  // `others`: the statements whose use of a buffer counts as reuse.
  void Write(const Statement& statement, absl::Span<const Statement> others) {
    const OpCounts ops = original_
                             ? CountOps(nest_.program(), *statement.block, /*detect_mad=*/false)
                             : statement.ops;
    WriteOperations(statement, ops);
    WriteAnnotations(statement);
    WriteGpu(statement);
    WriteBuffers(statement, others);
    WriteIntensity(statement, ops);
    WriteAllocation(statement);
    row_[kOuter] = SignedLog2(statement.executions[0]);
    row_[kOuter + 1] = SignedLog2(static_cast<double>(statement.loops.size()));
  }

 private:
  void WriteOperations(const Statement& statement, const OpCounts& ops) {
    float* out = row_ + kOperations;
    for (const OpCounts::Arithmetic* a : {&ops.floating, &ops.integer}) {
      for (const int count : {a->mad, a->addsub, a->mul, a->divmod, a->cmp, a->math, a->other})
        *out++ = SignedLog2(count * statement.executions[0]);
    }
    *out++ = SignedLog2(ops.boolean * statement.executions[0]);
    *out++ = SignedLog2(ops.select * statement.executions[0]);
  }

  void WriteAnnotations(const Statement& statement) {
    float* out = row_ + kAnnotations;
    for (const ir::LoopKind kind :
         {ir::LoopKind::kVectorized, ir::LoopKind::kUnrolled, ir::LoopKind::kParallel}) {
      int num = 0;
      double product = 0;
      const NestLoop* innermost = nullptr;
      for (const NestLoop& loop : statement.loops) {
        if (loop.kind != kind) continue;
        product = (num++ == 0 ? 1 : product) * static_cast<double>(loop.extent);
        innermost = &loop;
      }
      out[0] = SignedLog2(num);
      out[1] = SignedLog2(product);
      out[2] = SignedLog2(innermost == nullptr ? 0 : static_cast<double>(innermost->extent));
      const Position position = innermost == nullptr ? Position::kNone
                                : original_          ? Position::kMixed
                                                     : innermost->position;
      out[3 + static_cast<int>(position)] = 1;
      out += 3 + kPositions;
    }
  }

  void WriteGpu(const Statement& statement) {
    double lengths[7] = {1, 1, 1, 1, 1, 1, 1};
    bool bound = false;
    for (const NestLoop& loop : statement.loops) {
      if (loop.axis == ir::ThreadAxis::kNone) continue;
      bound = true;
      lengths[static_cast<int>(loop.axis) - 1] *= static_cast<double>(loop.extent);
    }
    float* out = row_ + kGpu;
    *out++ = bound ? 1 : 0;
    for (const double length : lengths) *out++ = SignedLog2(length);
  }

  void WriteBuffers(const Statement& statement, absl::Span<const Statement> others) {
    const double executions = statement.executions[0];
    absl::InlinedVector<Lines, 8> lines;
    absl::InlinedVector<int, 8> order(statement.accesses.size());
    std::iota(order.begin(), order.end(), 0);
    for (const Access& access : statement.accesses) {
      lines.push_back(LinesOf(nest_, statement, access, target_.cache_line_bytes,
                              /*repeat_innermost=*/original_));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      if (lines[a].lines != lines[b].lines) return lines[a].lines > lines[b].lines;
      return statement.accesses[a].element_bytes > statement.accesses[b].element_bytes;
    });
    for (size_t slot = 0; slot < std::min<size_t>(order.size(), kStatementBuffers); ++slot) {
      const Access& access = statement.accesses[order[slot]];
      const Lines& own = lines[order[slot]];
      const Reuse reuse = ReuseOf(statement, access, others, traffic_);
      const double bytes = executions * access.element_bytes;
      const double unique_bytes = access.touched[0] * access.element_bytes;
      // Without reuse the public extractor multiplies by two, so that such a buffer ranks above any
      // with reuse.
      const double repeats = reuse.count > 0.5 ? reuse.count : 0.5;
      float* out = row_ + kBufferColumns + static_cast<int>(slot) * kColumnsPerBuffer;
      out[static_cast<int>(access.kind)] = 1;
      out += 3;
      for (const double size : {bytes, unique_bytes, own.lines, own.unique})
        *out++ = SignedLog2(size);
      out[static_cast<int>(reuse.kind)] = 1;
      out += kReuseKinds;
      for (const double value : {reuse.distance_iterations, reuse.distance_bytes, reuse.count})
        *out++ = SignedLog2(value);
      for (const double size : {bytes, unique_bytes, own.lines, own.unique})
        *out++ = SignedLog2(size / repeats);
      *out = SignedLog2(static_cast<double>(own.stride));
    }
  }

  // Operations per touched byte, against the operations done so far from the inside out.
  void WriteIntensity(const Statement& statement, const OpCounts& ops) {
    const OpCounts::Arithmetic& f = ops.floating;
    const double per_execution = 2 * f.mad + f.addsub + f.mul + f.divmod + f.cmp + f.math + f.other;
    const int loops = static_cast<int>(statement.loops.size());
    if (per_execution <= 0 || loops == 0) return;
    const auto operations = [&](int step) {
      return per_execution * statement.executions[loops - 1 - step];
    };
    const auto intensity = [&](int step) {
      double bytes = 0;
      for (const Access& access : statement.accesses)
        bytes += access.touched[loops - 1 - step] * access.element_bytes;
      return operations(step) / bytes;
    };
    int step = 0;
    for (int sample = 0; sample < kIntensitySamples; ++sample) {
      const double wanted = operations(loops - 1) * (sample + 1) / kIntensitySamples;
      while (step < loops - 1 && operations(step) < wanted) ++step;
      double value = intensity(step);
      if (step > 0) {
        const double before = operations(step - 1), after = operations(step);
        const double base = intensity(step - 1);
        value = base + (value - base) * (wanted - before) / (after - before);
      }
      row_[kIntensity + sample] = SignedLog2(value);
    }
  }

  void WriteAllocation(const Statement& statement) {
    const ir::BufferId buffer = statement.block->outputs[0];
    const ir::Buffer& info = nest_.program().buffers[buffer];
    if (info.input || info.output) return;
    // The buffer lives in the innermost loop around all of its users, and is as large as what they
    // touch under it.
    size_t depth = statement.loops.size();
    for (const Statement& other : nest_.statements()) {
      if (other.Find(buffer) == nullptr) continue;
      size_t common = 0;
      while (common < std::min(depth, other.loops.size()) &&
             other.loops[common].node == statement.loops[common].node)
        ++common;
      depth = common;
    }
    double elements = 0;
    for (const Statement& other : nest_.statements()) {
      if (const Access* access = other.Find(buffer))
        elements = std::max(elements, access->touched[depth]);
    }
    const double inner = statement.executions[depth];
    const double outer = statement.executions[0] / inner;
    const double values[] = {elements * ir::DTypeBytes(info.dtype), elements * outer, outer, inner};
    for (int i = 0; i < 4; ++i) row_[kAllocation + i] = SignedLog2(values[i]);
  }

  const Nest& nest_;
  const LoopTraffic& traffic_;
  const target::Target& target_;
  const bool original_;
  float* const row_;
};

class StatementFeatureSet final : public FeatureSet {
 public:
  explicit StatementFeatureSet(StatementVariant variant) : variant_(variant) {}

  absl::string_view name() const override {
    return variant_ == StatementVariant::kCorrected ? "statement" : "statement_original";
  }
  int Columns() const override { return kStatementColumns; }
  const std::vector<std::string>& ColumnNames() const override { return StatementColumnNames(); }
  bool RowPerStatement() const override { return true; }

  absl::Status Extract(const ir::Program& program, const target::Target& target,
                       std::vector<float>& rows_out, int& row_count) const override {
    thread_local Nest nest;  // keeps its memory from candidate to candidate
    thread_local LoopTraffic traffic;
    HONE_RETURN_IF_ERROR(AnalyzeBlocks(program, nest));
    const absl::Span<const Statement> statements = nest.statements();
    const bool original = variant_ == StatementVariant::kOriginal;
    traffic.Clear(program);
    if (!original) {
      for (const Statement& statement : statements) traffic.Add(statement);
    }
    const size_t begin = rows_out.size();
    rows_out.resize(begin + statements.size() * kStatementColumns, 0.0f);
    for (size_t i = 0; i < statements.size(); ++i) {
      if (original) traffic.Add(statements[i]);  // public code knows only what came before
      RowWriter(nest, traffic, target, variant_, rows_out.data() + begin + i * kStatementColumns)
          .Write(statements[i], original ? statements.first(i + 1) : statements);
    }
    row_count = static_cast<int>(statements.size());
    return absl::OkStatus();
  }

 private:
  const StatementVariant variant_;
};

}  // namespace

const FeatureSet& StatementFeatures(StatementVariant variant) {
  static const auto* corrected = new StatementFeatureSet(StatementVariant::kCorrected);
  static const auto* original = new StatementFeatureSet(StatementVariant::kOriginal);
  return variant == StatementVariant::kCorrected ? *corrected : *original;
}

}  // namespace hone::feature
