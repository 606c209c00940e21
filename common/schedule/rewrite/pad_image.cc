#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {

using ir::AtomId;
using ir::Axis;
using ir::BufferId;
using ir::ExprId;
using ir::Index;

namespace {

absl::Status NoImage(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("a padded image: ", why));
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

// Returns the load of the image that a sum reads through a window. Its guards only keep the window
// inside of the image.
absl::StatusOr<ir::Expr> ImageOf(const ir::Workload& w, const ir::Stage& stage) {
  if (stage.reducer != ir::Reducer::kSum) return NoImage("the stage is not a sum");
  std::vector<ir::Expr> windows;
  w.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = w.pool.IndicesOf(load);
    const bool slides = absl::c_any_of(
        indices, [&](const Index& index) { return SlideOf(stage, index).axis != ir::kNoAtom; });
    if (slides && load.gathered < 0) windows.push_back(load);
  });
  if (windows.size() != 1) return NoImage("not exactly one tensor is read through a window");
  const ir::Expr image = windows[0];
  const ir::IndexList indices = w.pool.IndicesOf(image);
  if (!IsZeroWithImage(w.pool, stage.values[0], image, indices))
    return NoImage("what is summed is not zero where the image is");
  const ir::Shape& shape = w.tensors[image.buffer].shape;
  for (const ir::Condition& guard : stage.guards) {
    bool pads = false;
    for (size_t d = 0; d < indices.size(); ++d)
      pads |= guard.index == indices[d] && guard.extent == shape[d];
    if (!pads) return NoImage("a guard does more than keep the window inside the image");
  }
  return image;
}

// Replaces the image in the value of a stage.
ExprId WithImageAt(ir::Workload& w, ExprId value, const ir::Expr& image, ExprId read) {
  const ir::IndexList indices = w.pool.IndicesOf(image);
  return w.pool.Rewrite(
      value,
      [&](const ir::Expr& expr) {
        const bool same =
            expr.buffer == image.buffer && expr.gathered < 0 && w.pool.IndicesOf(expr) == indices;
        return same ? read : ir::kNoExpr;
      },
      [](const Index& index) { return index; });
}

absl::StatusOr<ir::Workload> Checked(ir::Workload workload) {
  ir::Workload result = Renumbered(std::move(workload));
  if (const absl::Status valid = result.Validate(); !valid.ok()) return NoImage(valid.message());
  return result;
}

// Adds what must not be negative so that the index is inside of a dimension.
void AddInside(const ir::Workload& w, const Index& index, int64_t extent, ir::IndexList& inside) {
  const ir::Range range = w.atoms.RangeOf(index);
  if (range.min < 0) inside.push_back(index);
  if (range.max >= extent) inside.push_back(index * -1 + (extent - 1));
}

// Adds a stage that copies the image, with zeros where an index of `inside` is negative.
BufferId PaddedCopy(ir::Workload& w, int& position, std::vector<Axis> axes, const ir::Expr& image,
                    ir::IndexList source, ir::IndexList inside) {
  const std::string name = absl::StrCat(w.tensors[w.stages[position].tensors[0]].name, "_p");
  const ExprId element = LoadOf(w, image.buffer, std::move(source));
  const ExprId zero = w.pool.Const(w.pool[element].dtype, 0.0);
  const ExprId value = w.pool.Where(std::move(inside), element, zero);
  return InsertStage(w, position, name, std::move(axes), ir::Reducer::kNone, {}, {}, value);
}

// Terms of a sum that replace one or two of its reductions.
struct Terms {
  AtomId first = ir::kNoAtom, second = ir::kNoAtom;  // term k is first = k / channels, second = k %
  int64_t channels = 1;                              // channels
  Axis axis;
};

// Returns the load that is multiplied by the image.
absl::StatusOr<ir::Expr> OtherFactor(const ir::Workload& w, const ir::Stage& stage,
                                     const ir::Expr& image) {
  std::vector<ir::Expr> others;
  w.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    if (load.buffer != image.buffer) others.push_back(load);
  });
  if (others.size() != 1 || others[0].gathered >= 0) return NoImage("it is not one of two factors");
  return others[0];
}

// Adds a stage that copies the other factor, with zeros for the terms that are added. Returns its
// load.
ExprId CopyWithTerms(ir::Workload& w, int& position, const ir::Expr& factor, const Terms& terms) {
  const ir::Stage stage = w.stages[position];
  const ir::IndexList indices = w.pool.IndicesOf(factor);
  std::vector<Axis> axes;
  ir::IndexList source, read, inside;
  std::vector<std::pair<AtomId, Index>> own;
  for (const auto* list : {&stage.spatial, &stage.reduce}) {
    for (const Axis& axis : *list) {
      const bool is_term = axis.var == terms.first;
      const bool used = absl::c_any_of(
          indices, [&](const Index& index) { return w.atoms.DependsOn(index, axis.var); });
      if (axis.var == terms.second || !(used || is_term)) continue;
      axes.push_back(NewAxis(w, is_term ? "k" : std::string(w.atoms[axis.var].name),
                             is_term ? terms.axis.extent : axis.extent));
      const Index mine = Index::Of(axes.back().var);
      read.push_back(Index::Of(is_term ? terms.axis.var : axis.var));
      own.emplace_back(axis.var, is_term ? w.atoms.FloorDiv(mine, terms.channels) : mine);
      if (!is_term) continue;
      if (terms.second != ir::kNoAtom)
        own.emplace_back(terms.second, w.atoms.Mod(mine, terms.channels));
      AddInside(w, w.atoms.FloorDiv(mine, terms.channels), axis.extent, inside);
    }
  }
  // The last axis of the sum stays the last one.
  const auto last = absl::c_find_if(
      read, [&](const Index& index) { return index.SingleAtom() == stage.spatial.back().var; });
  if (last != read.end()) {
    const auto shift = last - read.begin();
    std::rotate(axes.begin() + shift, axes.begin() + shift + 1, axes.end());
    std::rotate(read.begin() + shift, read.begin() + shift + 1, read.end());
  }
  for (const Index& index : indices) source.push_back(w.atoms.Substitute(index, own));
  const BufferId copy = PaddedCopy(w, position, axes, factor, source, inside);
  return LoadOf(w, copy, read);
}

std::vector<Axis> ReduceOver(const ir::Stage& stage, const Terms& terms) {
  std::vector<Axis> reduce;
  for (const Axis& axis : stage.reduce) {
    if (axis.var == terms.first) {
      reduce.push_back(terms.axis);
    } else if (axis.var != terms.second) {
      reduce.push_back(axis);
    }
  }
  return reduce;
}

// Rounds the number of channels, the last dimension of the image, up to a multiple. The stage then
// reads channels that the image does not have, until it reads a copy.
absl::Status PadChannels(ir::Workload& w, int& position, ir::Expr& image, int64_t multiple) {
  const ir::Stage stage = w.stages[position];
  ir::IndexList indices = w.pool.IndicesOf(image);
  const auto channel = absl::c_find_if(
      stage.reduce, [&](const Axis& axis) { return axis.var == indices.back().SingleAtom(); });
  if (channel == stage.reduce.end()) return NoImage("its last dimension is not reduced on its own");
  if (channel->extent % multiple == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const ir::Expr factor, OtherFactor(w, stage, image));
  const Terms terms{.first = channel->var,
                    .axis = NewAxis(w, "k", ir::CeilDivInt(channel->extent, multiple) * multiple)};
  indices.back() = Index::Of(terms.axis.var);
  const ExprId read = LoadOf(w, image.buffer, indices);
  ExprId value = WithImageAt(w, stage.values[0], image, read);
  value = WithImageAt(w, value, factor, CopyWithTerms(w, position, factor, terms));
  w.stages[position].values = {value};
  w.stages[position].reduce = ReduceOver(stage, terms);
  image = w.pool[read];
  return absl::OkStatus();
}

constexpr int64_t kMostRows = 1024;

// See PixelRows. The pixel (h, w) of an output is row h·width + w of the sums, where `width` is
// that of the padded image, so that neighbouring rows read neighbouring pixels. The rows between
// the lines are sums, too, which nothing reads.
absl::StatusOr<ir::Workload> JoinedRows(ir::Workload w, int position, const ir::Expr& image,
                                        int64_t multiple) {
  const ir::Stage stage = w.stages[position];
  const ir::IndexList indices = w.pool.IndicesOf(image);
  const ir::Shape shape = w.tensors[image.buffer].shape;
  std::vector<size_t> sliding;
  bool strides = false;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Slide slide = SlideOf(stage, indices[d]);
    if (slide.axis == ir::kNoAtom) continue;
    strides |= slide.stride != 1;
    sliding.push_back(d);
  }
  if (sliding.size() != 2 || sliding[1] != sliding[0] + 1)
    return NoImage("the window does not slide along two neighbouring dimensions");
  const size_t y = sliding[0], x = sliding[1];
  const AtomId h = SlideOf(stage, indices[y]).axis, v = SlideOf(stage, indices[x]).axis;
  const auto axis_of = [&](AtomId var) {
    return absl::c_find_if(stage.spatial, [&](const Axis& axis) { return axis.var == var; });
  };
  const auto line = axis_of(h), column = axis_of(v);
  if (column != line + 1) return NoImage("the axes of the pixels are not neighbours");
  bool elsewhere = false;
  w.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& others = w.pool.IndicesOf(load);
    for (size_t d = 0; d < others.size(); ++d) {
      const bool own = load.buffer == image.buffer && (d == y || d == x);
      elsewhere |= !own && (w.atoms.DependsOn(others[d], h) || w.atoms.DependsOn(others[d], v));
    }
  });
  if (elsewhere) return NoImage("another index depends on the pixel");

  const ir::Range lines = w.atoms.RangeOf(indices[y]), columns = w.atoms.RangeOf(indices[x]);
  const int64_t width = strides ? column->extent : columns.extent();
  const int64_t needed = (line->extent - 1) * width + column->extent;
  const int64_t rows = ir::CeilDivInt(needed, multiple) * multiple;
  const Axis row = NewAxis(w, "q", rows);

  std::vector<Axis> axes;
  ir::IndexList source, place, inside;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (d == x) continue;
    if (d != y) {
      const int64_t extent = std::max(shape[d], w.atoms.RangeOf(indices[d]).max + 1);
      axes.push_back(NewAxis(w, absl::StrCat("x", d), extent));
      source.push_back(Index::Of(axes.back().var));
      place.push_back(indices[d]);
      AddInside(w, source.back(), shape[d], inside);
    } else if (strides) {
      std::vector<std::pair<AtomId, Index>> own;
      for (const Axis& tap : stage.reduce) {
        if (!w.atoms.DependsOn(indices[y], tap.var) && !w.atoms.DependsOn(indices[x], tap.var))
          continue;
        axes.push_back(NewAxis(w, std::string(w.atoms[tap.var].name), tap.extent));
        own.emplace_back(tap.var, Index::Of(axes.back().var));
        place.push_back(Index::Of(tap.var));
      }
      axes.push_back(NewAxis(w, "x_q", rows));
      const Index at = Index::Of(axes.back().var);
      own.emplace_back(h, w.atoms.FloorDiv(at, width));
      own.emplace_back(v, w.atoms.Mod(at, width));
      source.push_back(w.atoms.Substitute(indices[y], own));
      source.push_back(w.atoms.Substitute(indices[x], own));
      place.push_back(Index::Of(row.var));
    } else {
      const Index tap = (indices[y] + (-lines.min) - Index::Of(h)) * width + indices[x] +
                        (-columns.min) - Index::Of(v);
      axes.push_back(NewAxis(w, "x_q", rows + w.atoms.RangeOf(tap).max));
      const Index at = Index::Of(axes.back().var);
      source.push_back(w.atoms.FloorDiv(at, width) + lines.min);
      source.push_back(w.atoms.Mod(at, width) + columns.min);
      place.push_back(tap + Index::Of(row.var));
    }
  }
  AddInside(w, source[y], shape[y], inside);
  AddInside(w, source[x], shape[x], inside);
  if (axes.size() > ir::kMaxRank)
    return NoImage(absl::StrCat("the copy would have ", axes.size(), " dimensions"));
  const BufferId padded = PaddedCopy(w, position, axes, image, source, inside);
  const ExprId value = WithImageAt(w, stage.values[0], image, LoadOf(w, padded, place));

  std::vector<Axis> spatial(stage.spatial.begin(), line);
  spatial.push_back(row);
  spatial.insert(spatial.end(), column + 1, stage.spatial.end());
  const std::string name = w.tensors[stage.tensors[0]].name;
  const BufferId sums = InsertStage(w, position, absl::StrCat(name, "_q"), std::move(spatial),
                                    stage.reducer, stage.reduce, {}, value);
  ir::IndexList read;
  ir::Stage& copy = w.stages[position];
  copy.reduce.clear();
  copy.guards.clear();
  copy.reducer = ir::Reducer::kNone;
  for (Axis& axis : copy.spatial) {
    const bool is_pixel = axis.var == h || axis.var == v;
    const Axis own = NewAxis(w, std::string(w.atoms[axis.var].name), axis.extent);
    if (!is_pixel) {
      read.push_back(Index::Of(own.var));
    } else if (axis.var == h) {
      read.push_back(Index::Of(own.var, width));
    } else {
      read.back() = read.back() + Index::Of(own.var);
    }
    axis = own;
  }
  copy.values = {LoadOf(w, sums, std::move(read))};
  return Checked(std::move(w));
}

}  // namespace

absl::StatusOr<ir::Workload> PadImage(const ir::Workload& workload, int position,
                                      absl::Span<const int64_t>) {
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  HONE_ASSIGN_OR_RETURN(const ir::Expr image, ImageOf(w, stage));
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
    return NoImage(
        absl::StrCat("the copy would have ", axes.size(), " axes; at most ", ir::kMaxRank));
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
  sum.values[0] = WithImageAt(w, sum.values[0], image, LoadOf(w, padded, place));
  return Checked(std::move(w));
}

absl::StatusOr<ir::Workload> PixelRows(const ir::Workload& workload, int position,
                                       absl::Span<const int64_t> numbers) {
  const int64_t multiple = numbers[0], terms = numbers[1];
  ir::Workload w = workload;
  HONE_ASSIGN_OR_RETURN(ir::Expr image, ImageOf(w, w.stages[position]));
  if (multiple < 0 || multiple > kMostRows)
    return NoImage(absl::StrCat("a multiple of ", multiple, " rows; at most ", kMostRows));
  if (terms < 1 || terms > kMostRows)
    return NoImage(absl::StrCat("a multiple of ", terms, " terms; 1 to ", kMostRows));
  HONE_RETURN_IF_ERROR(PadChannels(w, position, image, terms));
  const ir::Stage stage = w.stages[position];
  const ir::IndexList indices = w.pool.IndicesOf(image);
  if (multiple > 0) return JoinedRows(std::move(w), position, image, multiple);
  std::vector<Axis> axes;
  ir::IndexList source, place, inside;
  for (size_t d = 0; d < indices.size(); ++d) {
    const ir::Range range = w.atoms.RangeOf(indices[d]);
    const bool slides = SlideOf(stage, indices[d]).axis != ir::kNoAtom;
    const int64_t extent = w.tensors[image.buffer].shape[d];
    axes.push_back(NewAxis(w, absl::StrCat("x", d),
                           slides ? range.extent() : std::max(extent, range.max + 1)));
    source.push_back(Index::Of(axes.back().var) + (slides ? range.min : 0));
    place.push_back(slides ? indices[d] + (-range.min) : indices[d]);
    AddInside(w, source.back(), extent, inside);
  }
  const BufferId padded = PaddedCopy(w, position, axes, image, source, inside);
  ir::Stage& sum = w.stages[position];
  sum.guards.clear();
  sum.values[0] = WithImageAt(w, sum.values[0], image, LoadOf(w, padded, place));
  return Checked(std::move(w));
}

absl::StatusOr<ir::Workload> JoinTaps(const ir::Workload& workload, int position,
                                      absl::Span<const int64_t> numbers) {
  const int64_t multiple = numbers[0];
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  HONE_ASSIGN_OR_RETURN(const ir::Expr image, ImageOf(w, stage));
  const ir::IndexList indices = w.pool.IndicesOf(image);
  if (multiple < 1 || multiple > kMostRows)
    return NoImage(absl::StrCat("a multiple of ", multiple, " terms; 1 to ", kMostRows));
  // The last dimensions are columns and channels: x = σ·w + s + …, and c.
  if (indices.size() < 2) return NoImage("it has no channels");
  const size_t x = indices.size() - 2;
  const Slide slide = SlideOf(stage, indices[x]);
  const AtomId c = indices.back().SingleAtom();
  const auto reduction = [&](AtomId var) {
    return absl::c_find_if(stage.reduce, [&](const Axis& axis) { return axis.var == var; });
  };
  const auto channel = reduction(c);
  auto tap = stage.reduce.end();
  for (auto axis = stage.reduce.begin(); axis != stage.reduce.end(); ++axis) {
    if (indices[x].CoeffOf(axis->var) == 1) tap = axis;
  }
  const ir::Shape shape = w.tensors[image.buffer].shape;
  if (slide.axis == ir::kNoAtom || tap == stage.reduce.end() || channel == stage.reduce.end() ||
      indices[x].terms().size() != 2 || channel->extent != shape.back())
    return NoImage("neighbouring taps do not read neighbouring columns of all channels");
  const AtomId s = tap->var;
  HONE_ASSIGN_OR_RETURN(const ir::Expr factor, OtherFactor(w, stage, image));
  const int64_t channels = channel->extent, taps = tap->extent * channels;
  const int64_t terms = ir::CeilDivInt(taps, multiple) * multiple;
  const ir::Range columns = w.atoms.RangeOf(indices[x]);
  const Axis term = NewAxis(w, "k", terms);

  std::vector<Axis> axes;
  ir::IndexList source, place, inside;
  for (size_t d = 0; d < x; ++d) {
    const ir::Range range = w.atoms.RangeOf(indices[d]);
    const bool slides = SlideOf(stage, indices[d]).axis != ir::kNoAtom;
    axes.push_back(NewAxis(w, absl::StrCat("x", d), slides ? range.extent() : shape[d]));
    source.push_back(Index::Of(axes.back().var) + (slides ? range.min : 0));
    place.push_back(slides ? indices[d] + (-range.min) : indices[d]);
    AddInside(w, source.back(), shape[d], inside);
  }
  axes.push_back(NewAxis(w, "x_c", (columns.extent() - tap->extent) * channels + terms));
  const Index at = Index::Of(axes.back().var);
  source.push_back(w.atoms.FloorDiv(at, channels) + columns.min);
  source.push_back(w.atoms.Mod(at, channels));
  AddInside(w, at + columns.min * channels, shape[x] * channels, inside);
  place.push_back((indices[x] + (-columns.min) - Index::Of(s)) * channels + Index::Of(term.var));
  const BufferId padded = PaddedCopy(w, position, axes, image, source, inside);
  ExprId value = WithImageAt(w, stage.values[0], image, LoadOf(w, padded, place));

  const Terms terms_of{.first = s, .second = c, .channels = channels, .axis = term};
  value = WithImageAt(w, value, factor, CopyWithTerms(w, position, factor, terms_of));

  ir::Stage& sum = w.stages[position];
  sum.guards.clear();
  sum.values = {value};
  sum.reduce = ReduceOver(stage, terms_of);
  return Checked(std::move(w));
}

}  // namespace hone::schedule
