#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {

using ir::AtomId;
using ir::Axis;
using ir::BufferId;
using ir::ExprId;
using ir::Index;

namespace {

absl::Status NotPadImage(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("pad_image: ", why));
}

// The axis of the output that a window index moves along, and by how many elements per step.
struct Slide {
  AtomId axis = ir::kNoAtom;
  int64_t stride = 0;
};

// Returns the slide of stride·axis + tap. Its axis is kNoAtom if the index has another form.
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

absl::StatusOr<ir::Workload> PadImage(const ir::Workload& workload, int position,
                                      absl::Span<const int64_t>) {
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  if (stage.reducer != ir::Reducer::kSum) return NotPadImage("the stage is not a sum");
  std::vector<ir::Expr> windows;
  w.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = w.pool.IndicesOf(load);
    const bool slides = absl::c_any_of(
        indices, [&](const Index& index) { return SlideOf(stage, index).axis != ir::kNoAtom; });
    if (slides && load.gathered < 0) windows.push_back(load);
  });
  if (windows.size() != 1) return NotPadImage("not exactly one tensor is read through a window");
  const ir::Expr image = windows[0];
  const ir::IndexList indices = w.pool.IndicesOf(image);
  if (!IsZeroWithImage(w.pool, stage.values[0], image, indices)) {
    return NotPadImage("what is summed is not zero where the image is");
  }
  const ir::Shape shape = w.tensors[image.buffer].shape;

  std::vector<Axis> axes;
  ir::IndexList source, place;  // of the copy, and of the window in it
  std::vector<ir::Condition> guards;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Slide slide = SlideOf(stage, indices[d]);
    const std::string name = absl::StrCat("x", d);
    if (slide.axis == ir::kNoAtom) {
      axes.push_back(NewAxis(w, name, shape[d]));
      source.push_back(Index::Of(axes.back().var));
      place.push_back(indices[d]);
      continue;
    }
    const ir::Range range = w.atoms.RangeOf(indices[d]);
    const Index tap = indices[d] + (-range.min);
    Index from(range.min);
    if (d + 1 == indices.size() && slide.stride > 1) {
      axes.push_back(NewAxis(w, absl::StrCat(name, "_phase"), slide.stride));
      from.AddTerm(axes.back().var, 1);
      place.push_back(w.atoms.Mod(tap, slide.stride));
      axes.push_back(NewAxis(w, name, ir::CeilDivInt(range.extent(), slide.stride)));
      from.AddTerm(axes.back().var, slide.stride);
      place.push_back(w.atoms.FloorDiv(tap, slide.stride));
    } else {
      axes.push_back(NewAxis(w, name, range.extent()));
      from.AddTerm(axes.back().var, 1);
      place.push_back(tap);
    }
    const ir::Range read = w.atoms.RangeOf(from);
    if (read.min < 0 || read.max >= shape[d]) guards.push_back({from, shape[d]});
    source.push_back(std::move(from));
  }
  for (const ir::Condition& guard : stage.guards) {
    bool pads = false;
    for (size_t d = 0; d < indices.size(); ++d)
      pads |= guard.index == indices[d] && guard.extent == shape[d];
    if (!pads) return NotPadImage("a guard does more than keep the window inside the image");
  }
  if (axes.size() > ir::kMaxRank)
    return NotPadImage(
        absl::StrCat("the copy would have ", axes.size(), " axes; at most ", ir::kMaxRank));
  const ExprId element = LoadOf(w, image.buffer, source);
  // A guard needs a reduction. Reduce over a single point; the neutral element is the padding.
  std::vector<Axis> reduce;
  if (!guards.empty()) reduce = {NewAxis(w, "z", 1)};
  const ir::Reducer reducer = guards.empty() ? ir::Reducer::kNone : ir::Reducer::kSum;
  const BufferId padded =
      InsertStage(w, position, absl::StrCat(w.tensors[stage.tensors[0]].name, "_p"), axes, reducer,
                  reduce, guards, element);
  const ExprId read = LoadOf(w, padded, place);
  ir::Stage& sum = w.stages[position];
  sum.guards.clear();
  sum.values[0] = w.pool.Rewrite(
      sum.values[0],
      [&](const ir::Expr& expr) {
        const bool same =
            expr.buffer == image.buffer && expr.gathered < 0 && w.pool.IndicesOf(expr) == indices;
        return same ? read : ir::kNoExpr;
      },
      [](const Index& index) { return index; });
  ir::Workload result = Renumbered(std::move(w));
  if (const absl::Status valid = result.Validate(); !valid.ok())
    return NotPadImage(valid.message());
  return result;
}

}  // namespace hone::schedule
