#include <algorithm>
#include <vector>

#include "common/ir/index.h"
#include "server/research/template/templates.h"

namespace hone::space {
namespace {

using schedule::Operand;

// Maximum channels of a block, which the copy of the data moves as one vector.
constexpr int64_t kMaxBlock = 64;

// A convolution's loops by role; its output channels are split into vectors.
struct ConvLoops {
  Operand main;
  std::vector<KnobLoop> groups;  // one loop if there are several groups
  KnobLoop n, h, w, vectors, lane, r, s, c;
  int64_t lanes = 1;
};

ConvLoops Begin(const TemplateContext& context, TemplateBuilder& b) {
  const OperatorForm& form = context.form;
  InlineStages(context, b);
  ConvLoops loops;
  loops.main = b.Block(form.main);
  const std::vector<KnobLoop> all = b.Loops(loops.main, form.extents);
  const auto at = [&](int role) { return all[form.axes[role]]; };
  loops.n = at(0), loops.h = at(1), loops.w = at(2);
  KnobLoop channels = at(3);
  if (form.groups > 1) {
    loops.groups.emplace_back();
    std::tie(loops.groups[0], channels) =
        b.SplitOff(channels, channels.extent.extent / form.groups);
  }
  loops.lanes = std::min(context.limits.lanes, channels.extent.extent);
  // A consumer runs on whole vectors of a group.
  while (form.groups > 1 && !form.consumer.empty() && channels.extent.extent % loops.lanes != 0)
    --loops.lanes;
  std::tie(loops.vectors, loops.lane) = b.SplitOff(channels, loops.lanes);
  loops.r = at(4), loops.s = at(5), loops.c = at(6);
  return loops;
}

int64_t Statements(const TemplateContext& context) {
  return context.form.guarded ? context.limits.guarded_statements
                              : context.limits.unrolled_statements;
}

// Packs the data into blocks of channels. Threads divide the copy.
void PackData(const TemplateContext& context, TemplateBuilder& b, const Operand& main,
              const Operand& block) {
  const Operand copy =
      b.Add("cache_read", {main, schedule::Text(context.form.data), schedule::Text("global")})[0];
  b.Add("transform_layout", {copy, schedule::Text("n, h, w, c -> n, c / $0, h, w, c % $0"), block});
  const std::vector<Operand> loops = b.Add("loops", {copy}, 4);
  const std::vector<Operand> parts = b.Add("split", {loops[3], schedule::Number(0), block}, 2);
  b.Add("reorder", {loops[0], parts[0], loops[1], loops[2], parts[1]});
  b.Add("vectorize", {parts[1]});
  b.Add("parallel", {b.Add("fuse", {loops[0], parts[0], loops[1]})[0]});
}

}  // namespace

void WriteConv2dDirect(const TemplateContext& context, TemplateBuilder& b) {
  const ConvLoops loops = Begin(context, b);
  const TileLimits& limits = context.limits;
  const std::vector<KnobLoop> o = b.DefineSplit(loops.vectors, limits.max_vectors);
  const std::vector<KnobLoop> w = b.DefineSplit(loops.w, limits.vector_registers - 2);
  FitRegisters(context, b, w[1], o[1]);
  const std::vector<KnobLoop> h = b.DefineSplit(loops.h);
  const std::vector<KnobLoop> c = b.DefineSplit(loops.c);
  // The loops are: outer tiles (0–2); rows, tiles of a row and channels (3–5), in three orders; the
  // window (6, 7) and channels (8), inside or outside of its columns; the register tile (9–11).
  ReorderUnder(
      b, loops.groups,
      {loops.n, h[0], o[0], h[1], w[0], c[0], loops.r, loops.s, c[1], w[1], o[1], loops.lane},
      {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
       {0, 1, 2, 3, 4, 5, 6, 8, 7, 9, 10, 11},
       {0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10, 11},
       {0, 1, 2, 4, 3, 5, 6, 8, 7, 9, 10, 11},
       {0, 1, 2, 5, 3, 4, 6, 7, 8, 9, 10, 11},
       {0, 1, 2, 5, 3, 4, 6, 8, 7, 9, 10, 11}});
  b.DefineUnroll(loops.s);
  b.DefineUnroll(w[1]);
  b.DefineUnroll(o[1]);
  b.LimitUnrolled(Statements(context));
  b.Add("vectorize", {loops.lane.loop});
  std::vector<KnobLoop> threads = loops.groups, shared = loops.groups;
  threads.insert(threads.end(), {loops.n, h[0], o[0]});
  shared.insert(shared.end(), {loops.n, h[0], h[1], o[0]});
  const Operand outer = b.Parallel(threads, shared, limits.cores);
  FuseConsumer(context, b, outer, loops.lanes);
}

void WriteConv2dNchw(const TemplateContext& context, TemplateBuilder& b) {
  const OperatorForm& form = context.form;
  const TileLimits& limits = context.limits;
  InlineStages(context, b);
  const Operand main = b.Block(form.main);
  const std::vector<KnobLoop> all = b.Loops(main, form.extents);
  const auto at = [&](int role) { return all[form.axes[role]]; };
  const KnobLoop n = at(0), r = at(4), s = at(5);
  // Splits a row into vectors of similar length.
  const int64_t width = at(2).extent.extent;
  const int64_t lanes = ir::CeilDivInt(width, ir::CeilDivInt(width, limits.lanes));
  const auto [vectors, lane] = b.SplitOff(at(2), lanes);
  const std::vector<KnobLoop> w = b.DefineSplit(vectors, limits.max_vectors);
  const std::vector<KnobLoop> o = b.DefineSplit(at(3), limits.vector_registers - 2);
  FitRegisters(context, b, o[1], w[1]);
  const std::vector<KnobLoop> h = b.DefineSplit(at(1));
  const std::vector<KnobLoop> c = b.DefineSplit(at(6));
  // The loops are: outer tiles (0–2); rows, tiles of a row and channels (3–5), in two orders; the
  // window (6, 7) and channels (8), inside or outside of it; the register tile (9–11).
  b.DefineReorder({n, o[0], h[0], h[1], w[0], c[0], r, s, c[1], o[1], w[1], lane},
                  {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
                   {0, 1, 2, 3, 4, 5, 8, 6, 7, 9, 10, 11},
                   {0, 1, 2, 5, 3, 4, 6, 7, 8, 9, 10, 11},
                   {0, 1, 2, 5, 3, 4, 8, 6, 7, 9, 10, 11}});
  b.DefineUnroll(s);
  b.DefineUnroll(o[1]);
  b.DefineUnroll(w[1]);
  b.LimitUnrolled(Statements(context));
  b.Add("vectorize", {lane.loop});
  const Operand outer = b.Parallel({n, o[0], h[0]}, {n, o[0], h[0], h[1]}, limits.cores);
  FuseConsumer(context, b, outer, lanes);
}

void WriteConv2dPacked(const TemplateContext& context, TemplateBuilder& b) {
  const ConvLoops loops = Begin(context, b);
  const TileLimits& limits = context.limits;
  const std::vector<KnobLoop> o = b.DefineSplit(loops.vectors, limits.max_vectors);
  const std::vector<KnobLoop> w = b.DefineSplit(loops.w, limits.vector_registers - 2);
  FitRegisters(context, b, w[1], o[1]);
  const std::vector<KnobLoop> c = b.DefineSplit(loops.c, kMaxBlock);
  constexpr int kChannels = 2;  // dimension of the weights
  PackWeight(context, b, loops.main, NumberOf(o[1]), loops.lanes, kChannels, NumberOf(c[1]));
  PackData(context, b, loops.main, NumberOf(c[1]));
  b.DefineReorder(
      {loops.n, o[0], loops.h, w[0], c[0], loops.r, loops.s, c[1], w[1], o[1], loops.lane},
      {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {0, 1, 2, 3, 4, 5, 7, 6, 8, 9, 10}});
  b.DefineUnroll(loops.s);
  b.Unroll(w[1]);
  b.Unroll(o[1]);
  b.LimitUnrolled(Statements(context));
  b.Add("vectorize", {loops.lane.loop});
  const Operand outer =
      b.Parallel({loops.n, o[0], loops.h}, {loops.n, o[0], loops.h}, limits.cores);
  FuseConsumer(context, b, outer, loops.lanes);
}

void WriteDepthwise(const TemplateContext& context, TemplateBuilder& b) {
  const OperatorForm& form = context.form;
  const TileLimits& limits = context.limits;
  InlineStages(context, b);
  const Operand main = b.Block(form.main);
  const std::vector<KnobLoop> loops = b.Loops(main, form.extents);
  const KnobLoop &n = loops[form.axes[0]], &r = loops[form.axes[4]], &s = loops[form.axes[5]];
  const int64_t lanes = std::min(limits.lanes, form.extents[form.axes[3]]);
  const auto [vectors, lane] = b.SplitOff(loops[form.axes[3]], lanes);
  const std::vector<KnobLoop> c = b.DefineSplit(vectors, limits.max_vectors);
  const std::vector<KnobLoop> h = b.DefineSplit(loops[form.axes[1]], limits.vector_registers - 2);
  const std::vector<KnobLoop> w = b.DefineSplit(loops[form.axes[2]], limits.vector_registers - 2);
  b.AddFilter("registers", {h[1], w[1], c[1]},
              [most = limits.vector_registers](absl::Span<const int64_t> e) {
                return e[0] * e[1] * e[2] + 2 <= most;
              });
  // The channels (2) and tiles of a row (3) are in two orders; the window (4, 5) is around the tile
  // (6–8) or inside its rows.
  b.DefineReorder({n, h[0], c[0], w[0], r, s, h[1], w[1], c[1], lane},
                  {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                   {0, 1, 3, 2, 4, 5, 6, 7, 8, 9},
                   {0, 1, 2, 3, 6, 4, 5, 7, 8, 9},
                   {0, 1, 3, 2, 6, 4, 5, 7, 8, 9}});
  for (const KnobLoop& loop : {r, s, h[1], w[1], c[1]}) b.DefineUnroll(loop);
  b.LimitUnrolled(limits.unrolled_statements);
  b.Add("vectorize", {lane.loop});
  const Operand outer = b.Parallel({n, h[0]}, {n, h[0], h[1]}, limits.cores);
  FuseConsumer(context, b, outer, lanes);
}

}  // namespace hone::space
