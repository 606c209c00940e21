#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/tuner/feature/feature_sets.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

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

// The number of cache lines that an access touches over the whole nest, and the number of distinct
// ones.
struct Lines {
  double lines = 1;
  double unique = 1;
  int64_t stride = 0;  // of the innermost loop, in elements
};

void LoopTraffic::Clear(const ir::Program& program) { bytes_.assign(program.nodes.size(), 0.0); }

void LoopTraffic::Add(const Statement& statement) {
  for (size_t d = 0; d < statement.loops.size(); ++d)
    bytes_[statement.loops[d].node] += statement.touched_bytes[d];
}

// Returns the first reason for reuse, from the innermost loop outwards: the access does not vary
// with a loop, which therefore repeats it (kLoop), or another statement of `others` under the loop
// touches the same buffer (kSerial). `others` may contain the statement itself.
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

// `repeat_innermost`: for each loop without a stride, divide by the innermost extent instead of the
// loop's own, as the public code does.
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

// The first columns of the groups in a row.
constexpr int kStatementBuffers = 5;
constexpr int kColumnsPerBuffer = 18;
constexpr int kIntensitySamples = 10;
constexpr int kOperations = 0;                  // 16 counts
constexpr int kAnnotations = kOperations + 16;  // 3 kinds × (3 + 8)
constexpr int kGpu = kAnnotations + 3 * 11;     // 8
constexpr int kBufferColumns = kGpu + 8;
constexpr int kIntensity = kBufferColumns + kStatementBuffers * kColumnsPerBuffer;
constexpr int kAllocation = kIntensity + kIntensitySamples;  // 4
constexpr int kOuter = kAllocation + 4;                      // 3
constexpr int kStatementColumns = kOuter + 3;
static_assert(kBufferColumns == 57 && kStatementColumns == 164);

std::vector<std::string> StatementNames() {
  std::vector<std::string> names;
  for (const char* type : {"float", "int"}) {
    for (const char* op : {"mad", "addsub", "mul", "divmod", "cmp", "math", "other"})
      names.push_back(absl::StrCat(type, ".", op));
  }
  names.insert(names.end(), {"bool", "select"});
  for (const char* kind : {"vectorize", "unroll", "parallel"}) {
    for (const char* what : {"num", "prod", "len", "pos_none", "pos_inner_spatial",
                             "pos_middle_spatial", "pos_outer_spatial", "pos_inner_reduce",
                             "pos_middle_reduce", "pos_outer_reduce", "pos_mixed"}) {
      names.push_back(absl::StrCat(kind, ".", what));
    }
  }
  names.insert(names.end(), {"is_gpu", "block_x", "block_y", "block_z", "thread_x", "thread_y",
                             "thread_z", "vthread"});
  for (int buffer = 0; buffer < kStatementBuffers; ++buffer) {
    for (const char* what :
         {"read", "write", "read_write", "bytes", "unique_bytes", "lines", "unique_lines",
          "reuse_loop", "reuse_serial", "reuse_none", "reuse_dis_iter", "reuse_dis_bytes",
          "reuse_ct", "bytes_d_reuse", "unique_bytes_d_reuse", "lines_d_reuse",
          "unique_lines_d_reuse", "stride"}) {
      names.push_back(absl::StrCat("buffer", buffer, ".", what));
    }
  }
  for (int sample = 0; sample < kIntensitySamples; ++sample)
    names.push_back(absl::StrCat("intensity.", sample));
  for (const char* what : {"size", "prod", "outer_prod", "inner_prod"})
    names.push_back(absl::StrCat("alloc.", what));
  names.insert(names.end(), {"outer_prod", "num_loops", "auto_unroll_max_step"});
  return names;
}

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

  // `others` are the statements whose accesses to a buffer count as reuse.
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
    absl::c_iota(order, 0);
    for (const Access& access : statement.accesses) {
      lines.push_back(LinesOf(nest_, statement, access, target_.cache_line_bytes,
                              /*repeat_innermost=*/original_));
    }
    absl::c_stable_sort(order, [&](int a, int b) {
      if (lines[a].lines != lines[b].lines) return lines[a].lines > lines[b].lines;
      return statement.accesses[a].element_bytes > statement.accesses[b].element_bytes;
    });
    for (size_t slot = 0; slot < std::min<size_t>(order.size(), kStatementBuffers); ++slot) {
      const Access& access = statement.accesses[order[slot]];
      const Lines& own = lines[order[slot]];
      const Reuse reuse = ReuseOf(statement, access, others, traffic_);
      const double bytes = executions * access.element_bytes;
      const double unique_bytes = access.touched[0] * access.element_bytes;
      // Without reuse, the public extractor multiplies by two. Such a buffer thus ranks above all
      // buffers with reuse.
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

  // Writes the operations per touched byte as a function of the operations so far, from the
  // innermost loop outwards.
  void WriteIntensity(const Statement& statement, const OpCounts& ops) {
    const OpCounts::Arithmetic& f = ops.floating;
    const double per_execution = 2 * f.mad + f.addsub + f.mul + f.divmod + f.cmp + f.math + f.other;
    const int loops = static_cast<int>(statement.loops.size());
    if (per_execution <= 0 || loops == 0) return;
    const auto operations = [&](int step) {
      return per_execution * statement.executions[loops - 1 - step];
    };
    const auto intensity = [&](int step) {
      return operations(step) / statement.touched_bytes[loops - 1 - step];
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
    // The buffer is allocated in the innermost loop around all of its users, with the size of what
    // they touch inside that loop.
    const size_t depth = DepthOfUsers(nest_, statement, buffer);
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

void DescribeStatements(const Nest& nest, const target::Target& target, StatementVariant variant,
                        std::vector<float>& rows_out) {
  thread_local LoopTraffic traffic;  // static to reuse its memory
  const absl::Span<const Statement> statements = nest.statements();
  const bool original = variant == StatementVariant::kOriginal;
  traffic.Clear(nest.program());
  if (!original) {
    for (const Statement& statement : statements) traffic.Add(statement);
  }
  const size_t begin = rows_out.size();
  rows_out.resize(begin + statements.size() * kStatementColumns, 0.0f);
  for (size_t i = 0; i < statements.size(); ++i) {
    if (original) traffic.Add(statements[i]);  // the public code knows only earlier statements
    RowWriter(nest, traffic, target, variant, rows_out.data() + begin + i * kStatementColumns)
        .Write(statements[i], original ? statements.first(i + 1) : statements);
  }
}

}  // namespace

std::unique_ptr<FeatureSet> MakeStatementFeatures(StatementVariant variant) {
  return std::make_unique<FeatureSet>(
      variant == StatementVariant::kCorrected ? "statement" : "statement_original",
      StatementNames(),
      [variant](const Nest& nest, const target::Target& target, std::vector<float>& rows_out) {
        DescribeStatements(nest, target, variant, rows_out);
      });
}

}  // namespace hone::feature
