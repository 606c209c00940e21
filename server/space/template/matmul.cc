#include <algorithm>
#include <vector>

#include "server/space/template/templates.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kMaxUnrolledK = 16;

void Write(const TemplateContext& context, TemplateBuilder& b, bool packed) {
  const OperatorForm& form = context.form;
  const TileLimits& limits = context.limits;
  InlineStages(context, b);
  const Operand main = b.Block(form.main);
  const std::vector<KnobLoop> loops = b.Loops(main, form.extents);
  const int64_t lanes = std::min(limits.lanes, form.extents[1]);
  const auto [vectors, lane] = b.SplitOff(loops[1], lanes);

  const std::vector<KnobLoop> y =
      b.DefineSplit(loops[0], {.parts = 3,
                               .policy = TemplateBuilder::PolicyFor(form.extents[0]),
                               .max_innermost = limits.vector_registers - 2});
  const std::vector<KnobLoop> x =
      b.DefineSplit(vectors, {.parts = 3,
                              .policy = TemplateBuilder::PolicyFor(vectors.extent.extent),
                              .max_innermost = limits.max_vectors});
  b.AddFilter("registers", {y[2], x[2]},
              [most = limits.vector_registers](absl::Span<const int64_t> e) {
                return e[0] * e[1] + e[1] + 1 <= most;
              });
  const std::vector<KnobLoop> k = b.DefineSplit(
      loops[2],
      {.policy = TemplateBuilder::PolicyFor(form.extents[2]), .max_innermost = kMaxUnrolledK});
  if (packed) PackWeight(context, b, main, NumberOf(x[2]), lanes);
  // Outer tiles; middle tiles and the reduction in an order that is a knob; the register tile.
  b.DefineReorder({y[0], x[0], y[1], x[1], k[0], k[1], y[2], x[2], lane},
                  {{0, 1, 2, 3, 4, 5, 6, 7, 8},
                   {0, 1, 3, 2, 4, 5, 6, 7, 8},
                   {0, 1, 4, 2, 3, 5, 6, 7, 8},
                   {0, 1, 4, 3, 2, 5, 6, 7, 8}});
  b.DefineUnroll(k[1]);
  b.DefineUnroll(y[2]);
  b.DefineUnroll(x[2]);
  b.LimitUnrolled(limits.unrolled_statements);
  b.Add("vectorize", {lane.loop});
  const Operand outer = b.Parallel({y[0], x[0]}, {y[0], y[1], x[0], x[1]}, limits.cores);
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
