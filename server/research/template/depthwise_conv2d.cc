#include <algorithm>
#include <vector>

#include "server/research/template/templates.h"

namespace hone::space {

using schedule::Operand;

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
