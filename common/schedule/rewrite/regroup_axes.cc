#include <algorithm>
#include <optional>
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

// An element that a stage reads at affine indices.
struct AffineRead {
  BufferId tensor = -1;
  ir::IndexList indices;
};

// Divides and joins axes of stages together with the dimensions of the tensors that they compute
// and read. Every element keeps its place in memory.
class AxisEditor {
 public:
  AxisEditor(ir::Workload workload, int stage)
      : w_(std::move(workload)),
        seed_(stage),
        touched_(w_.stages.size(), false),
        divided_(w_.tensors.size(), false),
        joined_(w_.tensors.size(), false) {
    touched_[seed_] = true;
    DropUnitReductions();
  }

  // Divides every axis that the stage reads in groups, such as c in X[c / 4], and then the axes and
  // dimensions of its neighbours that correspond to it. Returns whether there is one.
  bool DivideGroups() {
    bool divides = false;
    while (DivideNext()) divides = true;
    return divides;
  }

  // Joins the axis at position `a` of the stage with the next one, and the dimensions that they
  // index. Returns false if some index is not affine in the joined axis; the workload is then of no
  // use.
  bool Join(size_t a) {
    JoinAxes(seed_, a);
    while (fits_ && JoinNext()) {
    }
    return fits_ && IsAffineInJoined();
  }

  // Removes the last dimensions of inputs that the stage reads if they have one element, such as
  // the taps of a 1×1 kernel.
  void DropUnitDimensions() {
    for (const AffineRead& read : ReadsOf(seed_)) {
      if (!CanReshape(read.tensor) || w_.tensors[read.tensor].stage >= 0) continue;
      while (ShapeOf(read.tensor).size() > 1 && ShapeOf(read.tensor).back() == 1)
        JoinDimensions(read.tensor, ShapeOf(read.tensor).size() - 2);
    }
  }

  bool fits() const { return fits_; }
  const ir::Stage& stage() const { return w_.stages[seed_]; }
  const ir::Workload& workload() const { return w_; }

 private:
  using Replaced = std::vector<std::pair<AtomId, Index>>;
  using Axes = std::vector<Axis> ir::Stage::*;

  ir::Shape& ShapeOf(BufferId tensor) { return w_.tensors[tensor].shape; }

  std::vector<AffineRead> ReadsOf(size_t s) const {
    std::vector<AffineRead> reads;
    for (const ExprId value : w_.stages[s].values) {
      w_.pool.VisitLoads(value, [&](const ir::Expr& load) {
        if (load.gathered < 0) reads.push_back({load.buffer, w_.pool.IndicesOf(load)});
      });
    }
    return reads;
  }

  // Whether the dimensions of a tensor may change: it is never read at a computed index, and does
  // not share bytes between elements.
  bool CanReshape(BufferId tensor) const {
    bool gathered = false;
    for (const ir::Stage& stage : w_.stages) {
      for (const ExprId value : stage.values) {
        w_.pool.VisitLoads(value, [&](const ir::Expr& load) {
          gathered |= load.buffer == tensor && load.gathered >= 0;
        });
      }
    }
    return !gathered && !ir::IsPacked(w_.tensors[tensor].dtype);
  }

  void Substitute(ir::Stage& stage, const Replaced& replaced) {
    const auto map = [&](const Index& index) { return w_.atoms.Substitute(index, replaced); };
    for (ExprId& value : stage.values) {
      value = w_.pool.Rewrite(value, [](const ir::Expr&) { return ir::kNoExpr; }, map);
    }
    for (ir::Condition& guard : stage.guards) guard.index = map(guard.index);
  }

  // Changes the indices of every read of a tensor.
  template <typename Map>
  void MapReads(BufferId tensor, Map map) {
    for (size_t s = 0; s < w_.stages.size(); ++s) {
      for (ExprId& value : w_.stages[s].values) {
        const ExprId before = value;
        value = w_.pool.Rewrite(
            value,
            [&](const ir::Expr& load) -> ExprId {
              if (load.buffer != tensor) return ir::kNoExpr;
              ir::IndexList indices = w_.pool.IndicesOf(load);
              map(indices);
              return LoadOf(w_, tensor, std::move(indices));
            },
            [](const Index& index) { return index; });
        if (value != before) touched_[s] = true;
      }
    }
  }

  // A reduction over one point, such as the taps of a 1×1 kernel, only obscures the indices.
  void DropUnitReductions() {
    std::vector<Axis>& reduce = w_.stages[seed_].reduce;
    Replaced zero;
    for (size_t a = reduce.size(); a-- > 0 && reduce.size() > 1;) {
      if (reduce[a].extent != 1) continue;
      zero.emplace_back(reduce[a].var, Index(0));
      reduce.erase(reduce.begin() + static_cast<ptrdiff_t>(a));
    }
    Substitute(w_.stages[seed_], zero);
  }

  // Replaces an axis by two, of which the inner one has `size` iterations.
  void DivideAxis(size_t s, Axes axes, size_t a, int64_t size) {
    ir::Stage& stage = w_.stages[s];
    const Axis axis = (stage.*axes)[a];
    const std::string name = w_.atoms[axis.var].name;
    const Axis outer = NewAxis(w_, absl::StrCat(name, "_0"), axis.extent / size);
    const Axis inner = NewAxis(w_, absl::StrCat(name, "_1"), size);
    (stage.*axes)[a] = outer;
    (stage.*axes).insert((stage.*axes).begin() + static_cast<ptrdiff_t>(a) + 1, inner);
    outer_.push_back(outer.var);
    touched_[s] = true;
    Substitute(stage, {{axis.var, Index::Of(outer.var, size) + Index::Of(inner.var)}});
    if (axes != &ir::Stage::spatial) return;
    for (const BufferId tensor : std::vector<BufferId>(stage.tensors))
      DivideDimension(tensor, a, size);
  }

  void DivideDimension(BufferId tensor, size_t d, int64_t size) {
    ir::Shape& shape = ShapeOf(tensor);
    fits_ &= shape.size() < static_cast<size_t>(ir::kMaxRank) && CanReshape(tensor);
    if (!fits_) return;
    shape[d] /= size;
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(d) + 1, size);
    divided_[tensor] = true;
    MapReads(tensor, [&](ir::IndexList& indices) {
      const Index whole = indices[d];
      indices[d] = w_.atoms.FloorDiv(whole, size);
      indices.insert(indices.begin() + static_cast<ptrdiff_t>(d) + 1, w_.atoms.Mod(whole, size));
    });
  }

  bool DivideNext() {
    for (size_t s = 0; fits_ && s < w_.stages.size(); ++s) {
      if (!touched_[s]) continue;
      for (const AffineRead& read : ReadsOf(s)) {
        for (size_t d = 0; d < read.indices.size(); ++d) {
          const bool own = static_cast<int>(s) == seed_ || divided_[read.tensor];
          if (own && DivideAxisIn(s, read.indices[d])) return true;
          if (DivideTensor(read.tensor, d, read.indices[d])) return true;
        }
      }
    }
    return false;
  }

  // Divides an axis that occurs in the index as axis / size or axis % size.
  bool DivideAxisIn(size_t s, const Index& index) {
    for (const ir::IndexTerm& term : index.terms()) {
      if (w_.atoms[term.atom].kind == ir::Atom::Kind::kVar) continue;
      const Index argument = w_.atoms[term.atom].argument;
      const int64_t size = w_.atoms[term.atom].divisor;
      const AtomId var = argument.SingleAtom();
      for (const Axes axes : {&ir::Stage::spatial, &ir::Stage::reduce}) {
        const std::vector<Axis>& list = w_.stages[s].*axes;
        const auto axis = absl::c_find_if(list, [&](const Axis& x) { return x.var == var; });
        if (axis == list.end() || size >= axis->extent || axis->extent % size != 0) continue;
        DivideAxis(s, axes, static_cast<size_t>(axis - list.begin()), size);
        return true;
      }
      if (DivideAxisIn(s, argument)) return true;
    }
    return false;
  }

  // Whether index = size·q + r with 0 ≤ r < size, so that dividing the dimension gives q and r.
  bool IsDivided(const Index& index, int64_t size) const {
    Index rest(ir::FloorModInt(index.constant(), size));
    for (const ir::IndexTerm& term : index.terms()) {
      if (term.coeff % size != 0) rest.AddTerm(term.atom, term.coeff);
    }
    const ir::Range range = w_.atoms.RangeOf(rest);
    return range.min >= 0 && range.max < size;
  }

  // Divides a dimension that is read at size·group + place, where an axis of groups is new.
  bool DivideTensor(BufferId tensor, size_t d, const Index& index) {
    const int64_t extent = ShapeOf(tensor)[d];
    int64_t size = 1;
    for (const ir::IndexTerm& term : index.terms()) {
      const bool of_groups = absl::c_any_of(
          outer_, [&](AtomId var) { return w_.atoms.DependsOn(Index::Of(term.atom), var); });
      if (of_groups && term.coeff > size && term.coeff < extent && extent % term.coeff == 0 &&
          IsDivided(index, term.coeff))
        size = term.coeff;
    }
    if (size == 1 || !CanReshape(tensor)) return false;
    // Stages that read whole axes are divided afterwards.
    for (size_t s = 0; s < w_.stages.size(); ++s) {
      for (const AffineRead& read : ReadsOf(s)) {
        if (read.tensor != tensor || IsDivided(read.indices[d], size)) continue;
        const AtomId var = read.indices[d].SingleAtom();
        if (var == ir::kNoAtom || w_.atoms[var].kind != ir::Atom::Kind::kVar ||
            w_.atoms[var].range.extent() != extent)
          return false;
      }
    }
    const int producer = w_.tensors[tensor].stage;
    if (producer < 0) {
      DivideDimension(tensor, d, size);
    } else {
      DivideAxis(static_cast<size_t>(producer), &ir::Stage::spatial, d, size);
    }
    return true;
  }

  void JoinAxes(size_t s, size_t a) {
    ir::Stage& stage = w_.stages[s];
    const Axis outer = stage.spatial[a], inner = stage.spatial[a + 1];
    const Axis joined =
        NewAxis(w_, absl::StrCat(w_.atoms[outer.var].name, "_", w_.atoms[inner.var].name),
                outer.extent * inner.extent);
    stage.spatial[a] = joined;
    stage.spatial.erase(stage.spatial.begin() + static_cast<ptrdiff_t>(a) + 1);
    joined_vars_.push_back(joined.var);
    touched_[s] = true;
    const Index place = Index::Of(joined.var);
    Substitute(stage, {{outer.var, w_.atoms.FloorDiv(place, inner.extent)},
                       {inner.var, w_.atoms.Mod(place, inner.extent)}});
    for (const BufferId tensor : std::vector<BufferId>(stage.tensors)) JoinDimensions(tensor, a);
  }

  void JoinDimensions(BufferId tensor, size_t d) {
    fits_ &= CanReshape(tensor);
    if (!fits_) return;
    ir::Shape& shape = ShapeOf(tensor);
    const int64_t inner = shape[d + 1];
    shape[d] *= inner;
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(d) + 1);
    joined_[tensor] = true;
    MapReads(tensor, [&](ir::IndexList& indices) {
      indices[d] = w_.atoms.Simplify(indices[d] * inner + indices[d + 1]);
      indices.erase(indices.begin() + static_cast<ptrdiff_t>(d) + 1);
    });
  }

  bool JoinNext() {
    for (size_t s = 0; s < w_.stages.size(); ++s) {
      if (!touched_[s]) continue;
      for (const AffineRead& read : ReadsOf(s)) {
        for (size_t d = 0; d < read.indices.size(); ++d) {
          if (d + 1 < read.indices.size() && JoinsAt(read, d)) {
            JoinTensor(read.tensor, d);
            return true;
          }
          const std::optional<size_t> axes =
              joined_[read.tensor] ? AxesIn(s, read.indices[d]) : std::optional<size_t>();
          if (axes.has_value()) {
            JoinAxes(s, *axes);
            return true;
          }
        }
      }
    }
    return false;
  }

  // Whether dimension d and the next one are read at p / n and p % n, where n is the extent of the
  // latter.
  bool JoinsAt(const AffineRead& read, size_t d) const {
    const AtomId quotient = read.indices[d].SingleAtom(),
                 remainder = read.indices[d + 1].SingleAtom();
    if (quotient == ir::kNoAtom || remainder == ir::kNoAtom) return false;
    const ir::Atom &q = w_.atoms[quotient], &r = w_.atoms[remainder];
    const int64_t inner = w_.tensors[read.tensor].shape[d + 1];
    return q.kind == ir::Atom::Kind::kFloorDiv && r.kind == ir::Atom::Kind::kMod &&
           q.argument == r.argument && q.divisor == inner && r.divisor == inner;
  }

  void JoinTensor(BufferId tensor, size_t d) {
    const int producer = w_.tensors[tensor].stage;
    if (producer < 0) {
      JoinDimensions(tensor, d);
    } else {
      JoinAxes(static_cast<size_t>(producer), d);
    }
  }

  // Returns the first of two neighbouring axes i, j of a stage if the index is n·i + j, where n is
  // the extent of j.
  std::optional<size_t> AxesIn(size_t s, const Index& index) const {
    const std::vector<Axis>& spatial = w_.stages[s].spatial;
    if (index.constant() != 0 || index.terms().size() != 2) return std::nullopt;
    for (size_t a = 0; a + 1 < spatial.size(); ++a) {
      if (index.CoeffOf(spatial[a + 1].var) == 1 &&
          index.CoeffOf(spatial[a].var) == spatial[a + 1].extent)
        return a;
    }
    return std::nullopt;
  }

  bool IsAffineInJoined() const {
    const auto divides = [&](const Index& index) {
      return absl::c_any_of(index.terms(), [&](const ir::IndexTerm& term) {
        return w_.atoms[term.atom].kind != ir::Atom::Kind::kVar &&
               absl::c_any_of(joined_vars_, [&](AtomId var) {
                 return w_.atoms.DependsOn(Index::Of(term.atom), var);
               });
      });
    };
    bool affine = true;
    for (const ir::Stage& stage : w_.stages) {
      for (const ExprId value : stage.values) {
        w_.pool.Visit(value, [&](const ir::Expr& expr) {
          if (expr.indices >= 0) affine &= absl::c_none_of(w_.pool.IndicesOf(expr), divides);
        });
      }
      for (const ir::Condition& guard : stage.guards) affine &= !divides(guard.index);
    }
    return affine;
  }

  ir::Workload w_;
  int seed_;
  std::vector<bool> touched_;           // stages that have changed
  std::vector<bool> divided_, joined_;  // tensors
  std::vector<AtomId> outer_;           // axes of groups
  std::vector<AtomId> joined_vars_;
  bool fits_ = true;  // false: a tensor cannot have the dimensions that it would need
};

}  // namespace

absl::StatusOr<ir::Workload> RegroupAxes(const ir::Workload& workload, int stage,
                                         absl::Span<const int64_t>) {
  AxisEditor editor(workload, stage);
  bool changed = editor.DivideGroups();
  if (!editor.fits()) {
    return absl::FailedPreconditionError(
        absl::StrCat("regroup_axes: a tensor would have more than ", ir::kMaxRank,
                     " dimensions, or has computed indices or packed elements"));
  }
  for (size_t a = editor.stage().spatial.size() - 1; a-- > 0;) {
    AxisEditor joined = editor;
    if (!joined.Join(a)) continue;
    editor = std::move(joined);
    changed = true;
  }
  if (!changed) {
    return absl::FailedPreconditionError(
        "regroup_axes: the stage reads no axis in groups, and no two of its axes can be joined");
  }
  editor.DropUnitDimensions();
  if (const absl::Status valid = editor.workload().Validate(); !valid.ok())
    return absl::FailedPreconditionError(absl::StrCat("regroup_axes: ", valid.message()));
  return editor.workload();
}

}  // namespace hone::schedule
