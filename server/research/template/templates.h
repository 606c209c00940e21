#ifndef HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATES_H_
#define HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATES_H_

#include <cstdint>

#include "server/research/template/template.h"

// The registered functions: Template::fits and Template::write. Knobs are named as in AutoTVM's
// templates.
namespace hone::space {

inline bool Always(const TemplateContext&) { return true; }
inline bool ConstantWeight(const TemplateContext& context) { return context.form.constant_weight; }
inline bool VariableWeight(const TemplateContext& context) { return !context.form.constant_weight; }

// tile_y and tile_x in three parts, tile_k in two; the order of the middle tiles and of tile_k's
// outer part; unroll of tile_k's inner part and of the register tile. A batch runs outermost.
void WriteMatmul(const TemplateContext& context, TemplateBuilder& builder);
// The same with the second operand in panels as wide as tile_x's innermost part: packed ahead of
// time if it is constant (AutoTVM's dense_pack), otherwise once per call (array packing).
void WriteMatmulPacked(const TemplateContext& context, TemplateBuilder& builder);

// tile_h, tile_w, tile_co, tile_ci; the order of the inner tiles and of the window; unroll of the
// window and of the register tile. Groups run outermost.
void WriteConv2dDirect(const TemplateContext& context, TemplateBuilder& builder);
// AutoTVM's NCHWc: data in blocks of tile_ic channels, weights in blocks of tile_ic by tile_oc;
// tile_ow, unroll_kw.
void WriteConv2dPacked(const TemplateContext& context, TemplateBuilder& builder);
// Channels first: vectors along an image's rows; tile_oc by tile_ow vectors in registers; tile_oh,
// tile_ic; the order of the window and the channels; the same unrolls.
void WriteConv2dNchw(const TemplateContext& context, TemplateBuilder& builder);
// tile_c, tile_h, tile_w; whether the window runs inside or outside of a tile's rows; unroll of the
// window and of the tile.
void WriteDepthwise(const TemplateContext& context, TemplateBuilder& builder);

// F(m×m, 3×3) as separate stages (common/schedule/rewrite): tile_p and tile_k of the products,
// their order and unrolls, and the number of tiles that a thread transforms at a time. Supports 3×3
// windows of stride 1 in jobs whose tolerance allows the rewrite.
bool FitsWinograd(const TemplateContext& context, int64_t m);
void WriteWinograd(const TemplateContext& context, TemplateBuilder& builder, int64_t m);

// AutoTVM's templates for GPUs (gpu_contraction.h).
//
// A direct convolution: tile_f, tile_y and tile_x in four parts, tile_rc, tile_ry and tile_rx in
// two, auto_unroll_max_step.
bool FitsGpuConv2d(const TemplateContext& context);
void WriteGpuConv2d(const TemplateContext& context, TemplateBuilder& builder);
// Products of matrices: tile_y and tile_x in four parts, tile_k in three. A batch runs outermost.
bool FitsGpuDense(const TemplateContext& context);
void WriteGpuDense(const TemplateContext& context, TemplateBuilder& builder);
// The same for few rows: a block of threads computes one result. tile_k says how many threads share
// its sum.
bool FitsGpuSmallBatch(const TemplateContext& context);
void WriteGpuSmallBatch(const TemplateContext& context, TemplateBuilder& builder);
// F(m×m, 3×3): tile_y, tile_x and tile_rc of the products, auto_unroll_max_step. The transforms
// have no knobs. Fits as for CPUs (FitsWinograd).
void WriteGpuWinograd(const TemplateContext& context, TemplateBuilder& builder, int64_t m);

// Functions that several templates use:

// Inlines the element-wise stages after the sum, except the last one.
void InlineStages(const TemplateContext& context, TemplateBuilder& builder);
// Places the last element-wise stage at a loop, vectorized.
void FuseConsumer(const TemplateContext& context, TemplateBuilder& builder,
                  const schedule::Operand& at, int64_t lanes);
// Packs the weights into panels of `vectors` · lanes along the output's last axis, and the channels
// of dimension `blocked` (−1: none) into blocks of `block`.
void PackWeight(const TemplateContext& context, TemplateBuilder& builder,
                const schedule::Operand& main, const schedule::Operand& vectors, int64_t lanes,
                int blocked = -1, const schedule::Operand& block = {});
// Calls DefineReorder for `loops`; every order has the loops `around` outermost.
void ReorderUnder(TemplateBuilder& builder, const std::vector<KnobLoop>& around,
                  const std::vector<KnobLoop>& loops, const std::vector<std::vector<int>>& orders);
// Adds the constraints of a register tile of rows by vectors.
void FitRegisters(const TemplateContext& context, TemplateBuilder& builder, const KnobLoop& rows,
                  const KnobLoop& vectors);
// Returns the register of the decision that is a loop's extent. REQUIRES: it is a decision.
schedule::Operand NumberOf(const KnobLoop& loop);

}  // namespace hone::space

#endif  // HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATES_H_
