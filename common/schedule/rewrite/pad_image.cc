#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/image.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {

using ir::Axis;
using ir::BufferId;
using ir::ExprId;
using ir::Index;

namespace {

constexpr char kName[] = "pad_image";

}  // namespace

absl::StatusOr<ir::Workload> PadImage(const ir::Workload& workload, int position,
                                      absl::Span<const int64_t>) {
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  HONE_ASSIGN_OR_RETURN(const ir::Expr image, ImageOf(kName, w, stage));
  const ir::IndexList indices = w.pool.IndicesOf(image);
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
  if (axes.size() > ir::kMaxRank)
    return NotFor(
        kName, absl::StrCat("the copy would have ", axes.size(), " axes; at most ", ir::kMaxRank));
  const ExprId element = LoadOf(w, image.buffer, source);
  // A guard needs a reduction. Reduce over a single point; the neutral element is the padding.
  std::vector<Axis> reduce;
  if (!guards.empty()) reduce = {NewAxis(w, "z", 1)};
  const ir::Reducer reducer = guards.empty() ? ir::Reducer::kNone : ir::Reducer::kSum;
  const BufferId padded =
      InsertStage(w, position, absl::StrCat(w.tensors[stage.tensors[0]].name, "_p"), axes, reducer,
                  reduce, guards, element);
  ir::Stage& sum = w.stages[position];
  sum.guards.clear();
  sum.values[0] = WithLoadAt(w, sum.values[0], image, LoadOf(w, padded, place));
  return Checked(kName, std::move(w));
}

}  // namespace hone::schedule
