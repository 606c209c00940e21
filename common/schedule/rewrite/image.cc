#include "common/schedule/rewrite/image.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/edit.h"

namespace hone::schedule {

using ir::Axis;
using ir::ExprId;
using ir::Index;

namespace {

// Whether a value is 0 where the image is: the image is a factor of it.
bool IsZeroWithImage(const ir::ExprPool& pool, ExprId id, const ir::Expr& image,
                     const ir::IndexList& indices) {
  const ir::Expr& expr = pool[id];
  switch (expr.op) {
    case ir::Op::kLoad:
      return expr.buffer == image.buffer && expr.gathered < 0 && pool.IndicesOf(expr) == indices;
    case ir::Op::kMul:
      return IsZeroWithImage(pool, expr.a, image, indices) ||
             IsZeroWithImage(pool, expr.b, image, indices);
    case ir::Op::kCast:
      return IsZeroWithImage(pool, expr.a, image, indices);
    default:
      return false;
  }
}

}  // namespace

absl::Status NotFor(absl::string_view rewrite, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(rewrite, ": ", why));
}

Slide SlideOf(const ir::Stage& stage, const Index& index) {
  Slide slide;
  bool slides = false;
  for (const ir::IndexTerm& term : index.terms()) {
    const auto is_axis = [&](const Axis& axis) { return axis.var == term.atom; };
    if (absl::c_any_of(stage.spatial, is_axis) && slide.axis == ir::kNoAtom && term.coeff > 0) {
      slide = {term.atom, term.coeff};
    } else if (absl::c_any_of(stage.reduce, is_axis)) {
      slides = true;
    } else {
      return {};
    }
  }
  return slides ? slide : Slide{};
}

absl::StatusOr<ir::Expr> ImageOf(absl::string_view rewrite, const ir::Workload& w,
                                 const ir::Stage& stage) {
  if (stage.reducer != ir::Reducer::kSum) return NotFor(rewrite, "the stage is not a sum");
  std::vector<ir::Expr> windows;
  w.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = w.pool.IndicesOf(load);
    const bool slides = absl::c_any_of(
        indices, [&](const Index& index) { return SlideOf(stage, index).axis != ir::kNoAtom; });
    if (slides && load.gathered < 0) windows.push_back(load);
  });
  if (windows.size() != 1)
    return NotFor(rewrite, "not exactly one tensor is read through a window");
  const ir::Expr image = windows[0];
  const ir::IndexList indices = w.pool.IndicesOf(image);
  if (!IsZeroWithImage(w.pool, stage.values[0], image, indices))
    return NotFor(rewrite, "what is summed is not zero where the image is");
  const ir::Shape& shape = w.tensors[image.buffer].shape;
  for (const ir::Condition& guard : stage.guards) {
    bool pads = false;
    for (size_t d = 0; d < indices.size(); ++d)
      pads |= guard.index == indices[d] && guard.extent == shape[d];
    if (!pads) return NotFor(rewrite, "a guard does more than keep the window inside the image");
  }
  return image;
}

ExprId WithLoadAt(ir::Workload& w, ExprId value, const ir::Expr& load, ExprId replacement) {
  const ir::IndexList indices = w.pool.IndicesOf(load);
  return w.pool.Rewrite(
      value,
      [&](const ir::Expr& expr) {
        const bool same =
            expr.buffer == load.buffer && expr.gathered < 0 && w.pool.IndicesOf(expr) == indices;
        return same ? replacement : ir::kNoExpr;
      },
      [](const Index& index) { return index; });
}

absl::StatusOr<ir::Workload> Checked(absl::string_view rewrite, ir::Workload workload) {
  ir::Workload result = Renumbered(std::move(workload));
  if (const absl::Status valid = result.Validate(); !valid.ok())
    return NotFor(rewrite, valid.message());
  return result;
}

}  // namespace hone::schedule
