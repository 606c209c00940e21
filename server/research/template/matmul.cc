#include <algorithm>
#include <vector>

#include "server/research/template/templates.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kMaxUnrolledK = 16;

void Write(const TemplateContext& context, TemplateBuilder& b, bool packed) {
  const OperatorForm& form = context.form;
  const TileLimits& limits = context.limits;
  InlineStages(context, b);
  const Operand main = b.Block(form.main);
  const std::vector<KnobLoop> all = b.Loops(main, form.extents);
  const KnobLoop &i = all[form.axes[0]], &j = all[form.axes[1]], &reduction = all[form.axes[2]];
  std::vector<KnobLoop> batch;
  for (size_t role = 3; role < form.axes.size(); ++role) batch.push_back(all[form.axes[role]]);
  const int64_t lanes = std::min(limits.lanes, j.extent.extent);
  const auto [vectors, lane] = b.SplitOff(j, lanes);

  const std::vector<KnobLoop> y = b.DefineSplit(i, limits.vector_registers - 2, /*parts=*/3);
  const std::vector<KnobLoop> x = b.DefineSplit(vectors, limits.max_vectors, /*parts=*/3);
  FitRegisters(context, b, y[2], x[2]);
  const std::vector<KnobLoop> k = b.DefineSplit(reduction, kMaxUnrolledK);
  if (packed) PackWeight(context, b, main, NumberOf(x[2]), lanes);
  // Outer tiles, then middle tiles and the reduction in one of four orders, then the register tile.
  ReorderUnder(b, batch, {y[0], x[0], y[1], x[1], k[0], k[1], y[2], x[2], lane},
               {{0, 1, 2, 3, 4, 5, 6, 7, 8},
                {0, 1, 3, 2, 4, 5, 6, 7, 8},
                {0, 1, 4, 2, 3, 5, 6, 7, 8},
                {0, 1, 4, 3, 2, 5, 6, 7, 8}});
  b.DefineUnroll(k[1]);
  b.DefineUnroll(y[2]);
  b.DefineUnroll(x[2]);
  b.LimitUnrolled(limits.unrolled_statements);
  b.Add("vectorize", {lane.loop});
  std::vector<KnobLoop> threads = batch, shared = batch;
  threads.insert(threads.end(), {y[0], x[0]});
  shared.insert(shared.end(), {y[0], y[1], x[0], x[1]});
  const Operand outer = b.Parallel(threads, shared, limits.cores);
  FuseConsumer(context, b, outer, lanes);
}

}  // namespace

void WriteMatmul(const TemplateContext& context, TemplateBuilder& builder) {
  Write(context, builder, /*packed=*/false);
}

void WriteMatmulPacked(const TemplateContext& context, TemplateBuilder& builder) {
  Write(context, builder, /*packed=*/true);
}

}  // namespace hone::space
