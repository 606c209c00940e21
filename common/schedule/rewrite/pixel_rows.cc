#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/image.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {

using ir::AtomId;
using ir::Axis;
using ir::BufferId;
using ir::ExprId;
using ir::Index;

namespace {

constexpr char kPixelRows[] = "pixel_rows", kJoinTaps[] = "join_taps";
// Of the numbers of the rewrites; of a dimension that is joined with another; and of the elements
// of a copy over those of the image or the result.
constexpr int64_t kMaxMultiple = 1024, kMaxExtent = int64_t{1} << 24, kMaxGrowth = 16;

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

// Terms of a sum that replace one or two of its reductions. Term k stands for first = k / channels
// and second = k % channels.
struct Terms {
  AtomId first = ir::kNoAtom, second = ir::kNoAtom;
  int64_t channels = 1;
  Axis axis;
};

// Returns the load of another tensor that is multiplied by the image. Both may be converted.
absl::StatusOr<ir::Expr> OtherFactor(absl::string_view rewrite, const ir::Workload& w,
                                     const ir::Stage& stage, const ir::Expr& image) {
  const auto converted = [&](ExprId id) {
    while (w.pool[id].op == ir::Op::kCast) id = w.pool[id].a;
    return w.pool[id];
  };
  const ir::Expr product = converted(stage.values[0]);
  if (product.op == ir::Op::kMul) {
    const ir::Expr left = converted(product.a), right = converted(product.b);
    const bool loads = left.op == ir::Op::kLoad && right.op == ir::Op::kLoad && left.gathered < 0 &&
                       right.gathered < 0 && left.buffer != right.buffer;
    if (loads) return left.buffer == image.buffer ? right : left;
  }
  return NotFor(rewrite, "the sum is not one of products of an image and another tensor");
}

// Refuses a copy that would be much larger than both the image and the result.
absl::Status CheckGrowth(absl::string_view rewrite, const ir::Workload& w, const ir::Stage& stage,
                         const ir::Expr& image, const std::vector<Axis>& axes) {
  double elements = 1;
  for (const Axis& axis : axes) elements *= static_cast<double>(axis.extent);
  const int64_t known = std::max(ir::ElementsOf(w.tensors[image.buffer].shape),
                                 ir::ElementsOf(w.tensors[stage.tensors[0]].shape));
  if (elements <= static_cast<double>(kMaxGrowth) * static_cast<double>(known))
    return absl::OkStatus();
  return NotFor(rewrite, absl::StrCat("the copy would have ", elements, " elements, more than ",
                                      kMaxGrowth, " times those of the image and of the result"));
}

absl::Status CheckMultiple(absl::string_view rewrite, absl::string_view of, int64_t multiple,
                           int64_t least) {
  if (multiple >= least && multiple <= kMaxMultiple) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(rewrite, ": a multiple of ", multiple, " ", of,
                                                 "; allowed are ", least, " to ", kMaxMultiple));
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
  if (multiple == 1) return absl::OkStatus();
  const ir::Stage stage = w.stages[position];
  ir::IndexList indices = w.pool.IndicesOf(image);
  const auto channel = absl::c_find_if(
      stage.reduce, [&](const Axis& axis) { return axis.var == indices.back().SingleAtom(); });
  bool elsewhere = channel == stage.reduce.end();
  for (size_t d = 0; !elsewhere && d + 1 < indices.size(); ++d)
    elsewhere = w.atoms.DependsOn(indices[d], channel->var);
  if (elsewhere) return NotFor(kPixelRows, "the last dimension is not reduced on its own");
  if (channel->extent % multiple == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const ir::Expr factor, OtherFactor(kPixelRows, w, stage, image));
  const Terms terms{.first = channel->var,
                    .axis = NewAxis(w, "k", ir::CeilDivInt(channel->extent, multiple) * multiple)};
  indices.back() = Index::Of(terms.axis.var);
  const ExprId read = LoadOf(w, image.buffer, indices);
  ExprId value = WithLoadAt(w, stage.values[0], image, read);
  value = WithLoadAt(w, value, factor, CopyWithTerms(w, position, factor, terms));
  w.stages[position].values = {value};
  w.stages[position].reduce = ReduceOver(stage, terms);
  image = w.pool[read];
  return absl::OkStatus();
}

// See PixelRows. The pixel (h, w) of an output is row h·width + w of the sums, where `width` is
// that of the padded image, so that neighbouring rows read neighbouring pixels. Nothing reads
// the sums of the rows between the lines.
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
    return NotFor(kPixelRows, "the window does not slide along two neighbouring dimensions");
  const size_t y = sliding[0], x = sliding[1];
  const AtomId h = SlideOf(stage, indices[y]).axis, v = SlideOf(stage, indices[x]).axis;
  const auto axis_of = [&](AtomId var) {
    return absl::c_find_if(stage.spatial, [&](const Axis& axis) { return axis.var == var; });
  };
  const auto line = axis_of(h), column = axis_of(v);
  if (column != line + 1) return NotFor(kPixelRows, "the axes of the pixels are not neighbours");
  HONE_ASSIGN_OR_RETURN(const ir::Expr factor, OtherFactor(kPixelRows, w, stage, image));
  const auto reads_pixel = [&](const Index& index) {
    return w.atoms.DependsOn(index, h) || w.atoms.DependsOn(index, v);
  };
  bool elsewhere = absl::c_any_of(w.pool.IndicesOf(factor), reads_pixel);
  for (size_t d = 0; d < indices.size(); ++d)
    elsewhere |= d != y && d != x && reads_pixel(indices[d]);
  if (elsewhere) return NotFor(kPixelRows, "another index depends on the pixel");

  const ir::Range lines = w.atoms.RangeOf(indices[y]), columns = w.atoms.RangeOf(indices[x]);
  if (lines.extent() > kMaxExtent || columns.extent() > kMaxExtent || line->extent > kMaxExtent)
    return NotFor(kPixelRows,
                  absl::StrCat("the padded image has more than ", kMaxExtent, " lines or columns"));
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
  // A guarded value is not inlined into the sum, whose rows would then not be at equal distances.
  if (inside.empty()) inside.push_back(Index::Of(axes.back().var));
  HONE_RETURN_IF_ERROR(CheckGrowth(kPixelRows, w, stage, image, axes));
  const BufferId padded = PaddedCopy(w, position, axes, image, source, inside);
  const ExprId value = WithLoadAt(w, stage.values[0], image, LoadOf(w, padded, place));

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
  return Checked(kPixelRows, std::move(w));
}

}  // namespace

absl::StatusOr<ir::Workload> PixelRows(const ir::Workload& workload, int position,
                                       absl::Span<const int64_t> numbers) {
  const int64_t multiple = numbers[0], terms = numbers[1];
  ir::Workload w = workload;
  HONE_RETURN_IF_ERROR(CheckMultiple(kPixelRows, "rows", multiple, 0));
  HONE_RETURN_IF_ERROR(CheckMultiple(kPixelRows, "terms", terms, 1));
  HONE_ASSIGN_OR_RETURN(ir::Expr image, ImageOf(kPixelRows, w, w.stages[position]));
  HONE_RETURN_IF_ERROR(OtherFactor(kPixelRows, w, w.stages[position], image).status());
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
  HONE_RETURN_IF_ERROR(CheckGrowth(kPixelRows, w, stage, image, axes));
  const BufferId padded = PaddedCopy(w, position, axes, image, source, inside);
  ir::Stage& sum = w.stages[position];
  sum.guards.clear();
  sum.values[0] = WithLoadAt(w, sum.values[0], image, LoadOf(w, padded, place));
  return Checked(kPixelRows, std::move(w));
}

absl::StatusOr<ir::Workload> JoinTaps(const ir::Workload& workload, int position,
                                      absl::Span<const int64_t> numbers) {
  const int64_t multiple = numbers[0];
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  HONE_RETURN_IF_ERROR(CheckMultiple(kJoinTaps, "terms", multiple, 1));
  HONE_ASSIGN_OR_RETURN(const ir::Expr image, ImageOf(kJoinTaps, w, stage));
  const ir::IndexList indices = w.pool.IndicesOf(image);
  // The last dimensions are columns and channels: x = σ·w + s + …, and c.
  if (indices.size() < 2) return NotFor(kJoinTaps, "it has no channels");
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
      tap == channel || indices[x].terms().size() != 2 || channel->extent != shape.back() ||
      channel->extent > kMaxMultiple || tap->extent > kMaxMultiple ||
      w.atoms.RangeOf(indices[x]).extent() > kMaxExtent)
    return NotFor(kJoinTaps, "neighbouring taps do not read neighbouring columns of all channels");
  const AtomId s = tap->var;
  for (size_t d = 0; d < x; ++d) {
    if (w.atoms.DependsOn(indices[d], s) || w.atoms.DependsOn(indices[d], c))
      return NotFor(kJoinTaps, "another index depends on the tap or the channel");
  }
  HONE_ASSIGN_OR_RETURN(const ir::Expr factor, OtherFactor(kJoinTaps, w, stage, image));
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
  HONE_RETURN_IF_ERROR(CheckGrowth(kJoinTaps, w, stage, image, axes));
  const BufferId padded = PaddedCopy(w, position, axes, image, source, inside);
  ExprId value = WithLoadAt(w, stage.values[0], image, LoadOf(w, padded, place));

  const Terms terms_of{.first = s, .second = c, .channels = channels, .axis = term};
  value = WithLoadAt(w, value, factor, CopyWithTerms(w, position, factor, terms_of));

  ir::Stage& sum = w.stages[position];
  sum.guards.clear();
  sum.values = {value};
  sum.reduce = ReduceOver(stage, terms_of);
  return Checked(kJoinTaps, std::move(w));
}

}  // namespace hone::schedule
