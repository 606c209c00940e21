#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/index.h"
#include "common/schedule/rewrite/rewrite.h"
#include "server/space/template/templates.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kTaps = 3;
constexpr int64_t kMaxUnrolledK = 8;

std::vector<KnobLoop> Cut(TemplateBuilder& b, const KnobLoop& loop, int64_t max_innermost = 0) {
  return b.DefineSplit(loop, {.policy = TemplateBuilder::PolicyFor(loop.extent.extent),
                              .max_innermost = max_innermost});
}

// The stages of one algorithm, each a nest.
class Writer {
 public:
  Writer(const TemplateContext& context, TemplateBuilder& b, int64_t m)
      : context_(context), limits_(context.limits), b_(b), main_(context.form.main), m_(m) {
    const OperatorForm& form = context.form;
    const auto extent = [&](int role) { return form.extents[form.axes[role]]; };
    n_ = extent(0), h_ = extent(1), w_ = extent(2), o_ = extent(3), c_ = extent(6);
    points_ = m + kTaps - 1;
    tiles_ = n_ * ir::CeilDivInt(h_, m) * ir::CeilDivInt(w_, m);
    lanes_ = std::min(limits_.lanes, o_);
  }

  void Write() {
    b_.Add("rewrite", {schedule::Text("winograd"), schedule::Text(main_), schedule::Number(m_)}, 0);
    if (!context_.form.consumer.empty()) {
      InlineStages(context_, b_);
      b_.Add("reverse_compute_inline", {b_.Block(context_.form.consumer)});
    }
    const KnobLoop vectors = Products();
    Weights(NumberOf(vectors));
    Tiles();
    Outputs();
    b_.LimitUnrolled(limits_.unrolled_statements);
  }

 private:
  std::string Stage(absl::string_view suffix) const { return absl::StrCat(main_, suffix); }

  // points² products of [tiles × channels] by [channels × outputs].
  KnobLoop Products() {
    const std::vector<KnobLoop> loops =
        b_.Loops(b_.Block(Stage("_m")), {points_, points_, tiles_, o_, c_});
    const auto [all, lane] = b_.SplitOff(loops[3], lanes_);
    const std::vector<KnobLoop> rows = Cut(b_, loops[2], limits_.vector_registers - 2);
    const std::vector<KnobLoop> vectors = Cut(b_, all, limits_.max_vectors);
    b_.AddFilter("registers", {rows[1], vectors[1]},
                 [most = limits_.vector_registers](absl::Span<const int64_t> e) {
                   return e[0] * e[1] + e[1] + 1 <= most;
                 });
    const std::vector<KnobLoop> k = Cut(b_, loops[4], kMaxUnrolledK);
    b_.DefineReorder(
        {loops[0], loops[1], vectors[0], rows[0], k[0], k[1], rows[1], vectors[1], lane},
        {{0, 1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 3, 2, 4, 5, 6, 7, 8}});
    b_.DefineUnroll(k[1]);
    b_.Unroll(rows[1]);
    b_.Unroll(vectors[1]);
    b_.Add("vectorize", {lane.loop});
    b_.Add("parallel", {b_.Add("fuse", {loops[0].loop, loops[1].loop})[0]});
    return vectors[1];
  }

  // The transformed weights in panels, ahead of time where they are constant.
  void Weights(const Operand& vectors) {
    const Operand block = b_.Block(Stage("_u"));
    const std::vector<Operand> loops = b_.Add("loops", {block}, 4);
    b_.Add(
        "vectorize",
        {b_.Add("split",
                {loops[3], schedule::Number(0), schedule::Number(std::max<int64_t>(1, lanes_ / 2))},
                2)[1]});
    b_.Add("transform_layout", {block,
                                schedule::Text(absl::StrCat("x, y, k, o -> x, y, o / $0*", lanes_,
                                                            ", k, o % $0*", lanes_)),
                                vectors});
    if (!context_.form.constant_weight)
      b_.Add("parallel", {b_.Add("fuse", {loops[0], loops[1]})[0]});
  }

  // Tiles of the input, a vector of channels at a time in registers.
  void Tiles() {
    const std::vector<KnobLoop> loops =
        b_.Loops(b_.Block(Stage("_v")), {points_, points_, tiles_, c_});
    const std::vector<KnobLoop> t = Cut(b_, loops[2]);
    const auto [channels, lane] = b_.SplitOff(loops[3], std::min(limits_.lanes, c_));
    const KnobLoop &x = loops[0], &y = loops[1];
    b_.Add("reorder", {t[0].loop, t[1].loop, channels.loop, x.loop, y.loop, lane.loop});
    const Operand columns = b_.Block(Stage("_bd"));
    b_.Add("compute_at", {columns, channels.loop});
    const std::vector<Operand> c = b_.Add("loops", {columns}, 3 + 4);  // t, x, j, channel
    b_.Add("reorder", {c[5], c[4]});
    const Operand gathered = b_.Block(Stage("_d"));
    b_.Add("compute_at", {gathered, c[5]});
    // t, i, j, channel, and the guard of the padding.
    const std::vector<Operand> g = b_.Add("loops", {gathered}, 5 + 5);
    b_.Add("reorder", {g[9], g[8]});
    b_.Add("vectorize", {g[8]});
    b_.Add("unroll", {g[6]});
    b_.Add("vectorize", {c[6]});
    b_.Add("unroll", {c[4]});
    b_.Add("unroll", {c[5]});
    b_.Add("vectorize", {lane.loop});
    b_.Add("unroll", {y.loop});
    b_.Add("unroll", {x.loop});
    b_.Parallel({t[0]}, {t[0], t[1]}, limits_.cores);
  }

  // Tiles of the output.
  void Outputs() {
    const Operand main = b_.Block(main_);
    const std::vector<KnobLoop> loops = b_.Loops(main, {n_, h_, w_, o_});
    const auto [h0, h1] = b_.SplitOff(loops[1], std::min(m_, h_));
    const auto [w0, w1] = b_.SplitOff(loops[2], std::min(m_, w_));
    const auto [channels, lane] = b_.SplitOff(loops[3], lanes_);
    b_.Add("reorder",
           {loops[0].loop, h0.loop, w0.loop, channels.loop, h1.loop, w1.loop, lane.loop});
    const Operand rows = b_.Block(Stage("_am"));
    b_.Add("compute_at", {rows, channels.loop});
    const std::vector<Operand> r = b_.Add("loops", {rows}, 4 + 4);  // t, a, y, channel
    b_.Add("reorder", {r[6], r[5]});
    b_.Add("vectorize", {r[7]});
    b_.Add("unroll", {r[5]});
    b_.Add("unroll", {r[6]});
    b_.Add("vectorize", {lane.loop});
    b_.Add("unroll", {w1.loop});
    b_.Add("unroll", {h1.loop});
    const KnobLoop fused{b_.Add("fuse", {loops[0].loop, h0.loop, w0.loop})[0], {.extent = tiles_}};
    const std::vector<KnobLoop> t = Cut(b_, fused);
    b_.Parallel({t[0]}, {t[0], t[1]}, limits_.cores);
  }

  const TemplateContext& context_;
  const TileLimits& limits_;
  TemplateBuilder& b_;
  const std::string main_;
  const int64_t m_;
  int64_t n_ = 1, h_ = 1, w_ = 1, o_ = 1, c_ = 1;
  int64_t points_ = 1, tiles_ = 1, lanes_ = 1;
};

}  // namespace

bool FitsWinograd(const TemplateContext& context, int64_t m) {
  // A tile that is larger than the image computes what nobody reads.
  const OperatorForm& form = context.form;
  if (form.extents[form.axes[1]] < m || form.extents[form.axes[2]] < m) return false;
  const absl::StatusOr<double> needed =
      schedule::RewriteTolerance(context.workload, "winograd", form.main, {m});
  return needed.ok() && *needed <= context.tolerance;
}

void WriteWinograd(const TemplateContext& context, TemplateBuilder& builder, int64_t m) {
  Writer(context, builder, m).Write();
}

}  // namespace hone::space
