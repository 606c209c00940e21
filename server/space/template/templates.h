#ifndef HONE_SERVER_SPACE_TEMPLATE_TEMPLATES_H_
#define HONE_SERVER_SPACE_TEMPLATE_TEMPLATES_H_

#include <cstdint>

#include "server/space/template/template.h"

// What the registry lists: Template::fits and Template::write. The knobs are named as in AutoTVM's
// templates for CPUs.
namespace hone::space {

inline bool Always(const TemplateContext&) { return true; }
inline bool ConstantWeight(const TemplateContext& context) { return context.form.constant_weight; }
inline bool VariableWeight(const TemplateContext& context) { return !context.form.constant_weight; }

// tile_y and tile_x in three parts, tile_k in two; the order of the middle tiles and of tile_k's
// outer part; unroll of tile_k's inner part and of the register tile. A batch runs outermost.
void WriteMatmul(const TemplateContext& context, TemplateBuilder& builder);
// The same on the second operand in panels of tile_x's innermost part: packed ahead of time where
// it is constant (AutoTVM's dense_pack), else once per call (array packing).
void WriteMatmulPacked(const TemplateContext& context, TemplateBuilder& builder);

// tile_h, tile_w, tile_co, tile_ci; the order of the inner tiles and of the window; unroll of the
// window and of the register tile. Groups run outermost.
void WriteConv2dDirect(const TemplateContext& context, TemplateBuilder& builder);
// AutoTVM's NCHWc: data in blocks of tile_ic channels, weights in blocks of tile_ic by tile_oc;
// tile_ow, unroll_kw.
void WriteConv2dPacked(const TemplateContext& context, TemplateBuilder& builder);
// Channels first: vectors along an image's rows, tile_oc of them by tile_ow vectors in registers;
// tile_oh, tile_ic; the order of the window and of the channels; the same unrolls.
void WriteConv2dNchw(const TemplateContext& context, TemplateBuilder& builder);
// tile_c, tile_h, tile_w; whether the window runs inside or outside of a tile's rows; unroll of the
// window and of the tile.
void WriteDepthwise(const TemplateContext& context, TemplateBuilder& builder);

// F(m×m, 3×3) as stages of their own (common/schedule/rewrite): tile_p and tile_k of the products,
// their order and unrolls, and how many tiles a thread transforms at a time. Fits 3×3 windows of
// stride 1 in jobs whose tolerance allows the rewrite.
bool FitsWinograd(const TemplateContext& context, int64_t m);
void WriteWinograd(const TemplateContext& context, TemplateBuilder& builder, int64_t m);

// The parts that templates share.
// Element-wise stages behind the sum but the last one are computed where they are read.
void InlineStages(const TemplateContext& context, TemplateBuilder& builder);
// The last one runs at a loop, in vectors.
void FuseConsumer(const TemplateContext& context, TemplateBuilder& builder,
                  const schedule::Operand& at, int64_t lanes);
// The weights in panels of `vectors` · lanes along their last axis of the output; the channels of
// dimension `blocked` (−1: none) in blocks of `block`.
void PackWeight(const TemplateContext& context, TemplateBuilder& builder,
                const schedule::Operand& main, const schedule::Operand& vectors, int64_t lanes,
                int blocked = -1, const schedule::Operand& block = {});
// DefineReorder of `loops` with others around them in every order.
void ReorderUnder(TemplateBuilder& builder, const std::vector<KnobLoop>& around,
                  const std::vector<KnobLoop>& loops, const std::vector<std::vector<int>>& orders);
// A register tile of rows by vectors.
void FitRegisters(const TemplateContext& context, TemplateBuilder& builder, const KnobLoop& rows,
                  const KnobLoop& vectors);
// Two parts of a loop, of any size where it has few factors.
std::vector<KnobLoop> Cut(TemplateBuilder& builder, const KnobLoop& loop,
                          int64_t max_innermost = 0);
// The number that decides an extent. REQUIRES a loop whose extent is a decision.
schedule::Operand NumberOf(const KnobLoop& loop);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_TEMPLATE_TEMPLATES_H_
