#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

using ir::AtomId;
using ir::Index;

namespace {

constexpr int64_t kMaxRegisters = 64;

// A reduction store and its enclosing loops, outermost first.
struct Site {
  struct Loop {
    AtomId var;
    int64_t extent;
  };
  StmtId store;
  ir::BufferId buffer;  // the first output
  std::vector<StmtId> loops;
  std::vector<Loop> around;  // copies of the original loops
};

class Promoter {
 public:
  explicit Promoter(LoweredProgram& program) : p_(program) {}

  absl::Status Run() {
    for (LoweredKernel& kernel : p_.kernels) Visit(kernel.body);
    for (const Site& site : sites_) {
      const size_t outside = Promote(site);
      HONE_RETURN_IF_ERROR(CheckPartialSums(site, outside));
    }
    return absl::OkStatus();
  }

 private:
  void Visit(StmtId id) {
    if (p_.stmts[id].kind == Stmt::Kind::kStore) {
      const Stmt& store = p_.stmts[id];
      if (store.reducer == ir::Reducer::kNone) return;
      Site site{.store = id, .buffer = store.outputs[0], .loops = loops_};
      for (StmtId loop : loops_) {
        site.around.push_back({p_.stmts[loop].var, p_.stmts[loop].extent});
      }
      sites_.push_back(std::move(site));
      return;
    }
    const bool loop = p_.stmts[id].kind == Stmt::Kind::kFor;
    if (loop) loops_.push_back(id);
    for (StmtId child : std::vector<StmtId>(p_.stmts[id].children)) Visit(child);
    if (loop) loops_.pop_back();
  }

  bool OccursInPlace(const Stmt& store, AtomId var) const {
    return std::any_of(store.indices.begin(), store.indices.end(),
                       [&](const Index& index) { return p_.atoms.DependsOn(index, var); });
  }
  static bool Reduces(const Stmt& store, AtomId var) {
    return std::find(store.reduce_vars.begin(), store.reduce_vars.end(), var) !=
           store.reduce_vars.end();
  }

  // Returns the terms of an index that vary in the loops from `first` on, except loops of the tile.
  Index InsidePart(const Site& site, size_t first, const Index& index) const {
    const Stmt& store = p_.stmts[site.store];
    Index inside;
    for (const ir::IndexTerm& term : index.terms()) {
      const Index part = Index::Of(term.atom, term.coeff);
      for (size_t l = first; l < site.loops.size(); ++l) {
        const AtomId var = p_.stmts[site.loops[l]].var;
        if (OccursInPlace(store, var) || !p_.atoms.DependsOn(part, var)) continue;
        inside += part;
        break;
      }
    }
    return inside;
  }

  // Whether an index, a sum of loop variables, takes every value of its range.
  bool IsContiguous(const Index& index) const {
    std::vector<std::pair<int64_t, int64_t>> steps;  // coefficient, largest step
    for (const ir::IndexTerm& term : index.terms()) {
      if (p_.atoms[term.atom].kind != ir::Atom::Kind::kVar) return false;
      steps.emplace_back(std::abs(term.coeff),
                         std::abs(term.coeff) * (p_.atoms[term.atom].range.extent() - 1));
    }
    std::sort(steps.begin(), steps.end());
    int64_t reach = 0;
    for (const auto& [coeff, most] : steps) {
      if (coeff > reach + 1) return false;
      reach += most;
    }
    return true;
  }

  // Adds the condition that a predicate of the store holds in some iteration of the loops from
  // `first` on, which decides whether the accumulator's element is used. Returns false if no
  // condition expresses that.
  bool AppendPlaceCondition(const Site& site, size_t first, const ir::Condition& condition,
                            std::vector<ir::Condition>& place) const {
    const Index inside = InsidePart(site, first, condition.index);
    if (inside == Index(0)) {
      place.push_back(condition);
      return true;
    }
    if (!IsContiguous(inside)) return false;
    const ir::Range range = p_.atoms.RangeOf(inside);
    const ir::Condition some{condition.index - inside + range.max,
                             condition.extent + range.max - range.min};
    const ir::Range reached = p_.atoms.RangeOf(some.index);
    if (reached.min < 0 || reached.max >= some.extent) place.push_back(some);
    return true;
  }

  // Checks that sums of short floats are complete when they are stored. `outside` is the number of
  // the site's loops outside the accumulators.
  absl::Status CheckPartialSums(const Site& site, size_t outside) const {
    const Stmt& store = p_.stmts[site.store];
    const ir::Buffer& buffer = p_.buffers[site.buffer];
    if (ir::AccumulatorOf(store.reducer, buffer.dtype) == buffer.dtype) return absl::OkStatus();
    const auto stores = std::count_if(sites_.begin(), sites_.end(), [&](const Site& other) {
      return other.buffer == site.buffer;
    });
    if (stores > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "partial sums of ", buffer.name, " may be rounded to ", ir::DTypeName(buffer.dtype),
          ", as it is computed in several places; after cache_write they are kept in f32"));
    }
    for (size_t l = 0; l < outside; ++l) {
      const Site::Loop& loop = site.around[l];
      if (!Reduces(store, loop.var) || loop.extent == 1) continue;
      const absl::string_view dtype = ir::DTypeName(buffer.dtype);
      return absl::InvalidArgumentError(
          absl::StrCat("partial sums of ", buffer.name, " would be rounded to ", dtype,
                       " at each of the ", loop.extent, " iterations of loop ",
                       p_.atoms[loop.var].name, "; after cache_write they are kept in f32"));
    }
    return absl::OkStatus();
  }

  ir::DType DTypeOf(ir::BufferId buffer) const { return p_.buffers[buffer].dtype; }

  // Adds a register buffer for each output of the store: an element for each point of the tile.
  std::vector<ir::BufferId> AddAccumulators(const Stmt& store, const std::vector<StmtId>& tile) {
    std::vector<ir::BufferId> accumulators;
    for (const ir::BufferId output : store.outputs) {
      ir::Buffer accumulator{
          .name = absl::StrCat(p_.buffers[output].name, ".acc", p_.buffers.size()),
          .dtype = ir::AccumulatorOf(store.reducer, DTypeOf(output)),
          .scope = ir::Scope::kFragment};
      for (StmtId loop : tile) accumulator.shape.push_back(p_.stmts[loop].extent);
      if (tile.empty()) accumulator.shape.push_back(1);
      p_.buffers.push_back(std::move(accumulator));
      accumulators.push_back(static_cast<ir::BufferId>(p_.buffers.size()) - 1);
    }
    return accumulators;
  }

  // Loads the elements of some buffers at a place, cast to the dtypes of the buffers `to`.
  std::vector<ir::ExprId> Values(absl::Span<const ir::BufferId> from, const ir::IndexList& at,
                                 absl::Span<const ir::BufferId> to) {
    std::vector<ir::ExprId> values;
    for (size_t c = 0; c < from.size(); ++c)
      values.push_back(p_.pool.Cast(DTypeOf(to[c]), p_.pool.Load(from[c], DTypeOf(from[c]), at)));
    return values;
  }

  std::vector<ir::ExprId> Identities(const Stmt& store, absl::Span<const ir::BufferId> of) {
    std::vector<ir::ExprId> values;
    for (size_t c = 0; c < of.size(); ++c) {
      const ir::Scalar identity =
          ir::ReducerIdentity(store.reducer, static_cast<int>(c), DTypeOf(of[c]));
      values.push_back(p_.pool.Const(DTypeOf(of[c]), identity));
    }
    return values;
  }

  // Returns the number of the site's loops that stay outside the accumulators: all of them if the
  // sums are not promoted.
  size_t Promote(const Site& site) {
    const Stmt store = p_.stmts[site.store];
    // A GPU thread already keeps its private arrays in registers.
    if (p_.IsForGpu() && p_.buffers[site.buffer].scope == ir::Scope::kLocal &&
        ir::AccumulatorOf(store.reducer, DTypeOf(site.buffer)) == DTypeOf(site.buffer)) {
      return site.loops.size();
    }
    // An instruction that computes a tile keeps its accumulators in memory.
    for (AtomId var : store.tensor_vars) {
      if (OccursInPlace(store, var)) return site.loops.size();
    }
    // Find the outermost loop below which the path to the store has only reduction and static
    // loops.
    size_t first = site.loops.size();
    bool runtime_reduction = false;
    size_t unrolled_reduction = site.loops.size();  // the outermost one
    int64_t lanes = 1, registers = 1;
    std::vector<StmtId> tile;
    for (size_t l = site.loops.size(); l-- > 0;) {
      const Stmt& loop = p_.stmts[site.loops[l]];
      const StmtId only = l + 1 < site.loops.size() ? site.loops[l + 1] : site.store;
      if (loop.children.size() != 1 || loop.children[0] != only) break;
      const bool place = OccursInPlace(store, loop.var);
      if (LoweredProgram::IsStatic(loop.loop)) {
        const bool reduces = Reduces(store, loop.var);
        if (place && reduces) return site.loops.size();
        if (reduces && loop.loop == ir::LoopKind::kUnrolled && loop.extent > 1)
          unrolled_reduction = l;
        if (place) {
          tile.push_back(site.loops[l]);
          (loop.loop == ir::LoopKind::kVectorized ? lanes : registers) *= loop.extent;
        }
      } else {
        // A loop that neither reduces nor occurs in the place repeats the whole reduction.
        if (loop.loop != ir::LoopKind::kSerial || place || !Reduces(store, loop.var)) break;
        runtime_reduction = true;
      }
      first = l;
    }
    // Static loops above the outermost runtime reduction stay outside and repeat everything inside.
    // If the entire reduction is unrolled, the loops above it stay outside.
    while (first < site.loops.size() &&
           (runtime_reduction ? LoweredProgram::IsStatic(p_.stmts[site.loops[first]].loop)
                              : first < unrolled_reduction)) {
      std::erase(tile, site.loops[first]);
      ++first;
    }
    registers = static_cast<int64_t>(store.outputs.size());
    for (StmtId loop : tile) {
      if (p_.stmts[loop].loop == ir::LoopKind::kUnrolled) registers *= p_.stmts[loop].extent;
    }
    const bool reduces_inside = runtime_reduction || unrolled_reduction < site.loops.size();
    if (!reduces_inside || first == site.loops.size() || registers > kMaxRegisters) {
      return site.loops.size();
    }
    std::reverse(tile.begin(), tile.end());

    // The conditions under which some inner iteration updates the element at all. Elsewhere it may
    // be outside the buffer and must not be loaded or stored.
    std::vector<ir::Condition> place_conditions, implied;
    for (const ir::Condition& condition : store.conditions) {
      std::vector<ir::Condition>& list =
          InsidePart(site, first, condition.index) == Index(0) ? place_conditions : implied;
      if (!AppendPlaceCondition(site, first, condition, list)) return site.loops.size();
    }
    place_conditions.insert(place_conditions.end(), implied.begin(), implied.end());

    // Each register buffer has one dimension per static loop of the tile, with the vector lanes
    // last.
    std::stable_sort(tile.begin(), tile.end(), [&](StmtId a, StmtId b) {
      return (p_.stmts[a].loop == ir::LoopKind::kVectorized) <
             (p_.stmts[b].loop == ir::LoopKind::kVectorized);
    });
    const std::vector<ir::BufferId> accumulators = AddAccumulators(store, tile);

    ir::IndexList places;
    for (StmtId loop : tile) places.push_back(Index::Of(p_.stmts[loop].var));
    if (tile.empty()) places.push_back(Index(0));

    // Outer reduction loops choose between the neutral element and the partial sum.
    std::vector<ir::Condition> is_first;
    bool narrowed = false, mixed = false;
    if (store.has_init) {
      for (size_t l = 0; l < first; ++l) {
        const Stmt& loop = p_.stmts[site.loops[l]];
        if (!Reduces(store, loop.var)) continue;
        is_first.push_back({Index::Of(loop.var), 1});
        mixed |= OccursInPlace(store, loop.var);
        for (const ir::Condition& guard : store.guards)
          narrowed |= p_.atoms.DependsOn(guard.index, loop.var);
      }
    }
    if (mixed) {
      // If a loop carries both spatial and reduction iterations, an element can start anywhere. Its
      // first step is where the bindings are 0, with the inner loops at their first iterations.
      static const Index* const zero = new Index(0);
      is_first.clear();
      for (const ir::Condition& condition : store.first) {
        const Index outer = p_.atoms.Substitute(condition.index, [&](AtomId var) -> const Index* {
          for (size_t l = first; l < site.loops.size(); ++l) {
            if (p_.stmts[site.loops[l]].var == var) return zero;
          }
          return nullptr;
        });
        if (outer != Index(0)) is_first.push_back({outer, 1});
      }
    }
    // The first iteration is not number 0, so LowerInits stores the neutral element separately.
    if (narrowed) return site.loops.size();

    const auto copy = [&](bool load) {
      std::vector<StmtId> cloned;
      std::vector<std::pair<AtomId, Index>> renamed;
      for (StmtId loop : tile) {
        cloned.push_back(p_.AddCopy(loop, load ? "_in" : "_out", renamed));
      }
      const auto rename = [&](const Index& index) { return p_.atoms.Substitute(index, renamed); };
      ir::IndexList memory, reg;
      for (const Index& index : store.indices) memory.push_back(rename(index));
      for (const Index& index : places) reg.push_back(rename(index));
      std::vector<ir::Condition> conditions;
      for (const ir::Condition& condition : place_conditions)
        conditions.push_back({rename(condition.index), condition.extent});
      const bool initializes = load && store.has_init && is_first.empty();
      const StmtId body = p_.Add({.kind = Stmt::Kind::kStore,
                                  .outputs = load ? accumulators : store.outputs,
                                  .indices = load ? reg : memory,
                                  .values = initializes ? Identities(store, accumulators)
                                            : load ? Values(store.outputs, memory, accumulators)
                                                   : Values(accumulators, reg, store.outputs),
                                  .conditions = conditions,
                                  .may_leave_garbage = load});
      return p_.Nest(cloned, body);
    };
    StmtId load = copy(true);
    if (store.has_init && !is_first.empty()) {
      // The first step of the outer reductions loads neutral elements, later steps load partial
      // sums.
      Stmt init_store{.kind = Stmt::Kind::kStore,
                      .outputs = accumulators,
                      .indices = places,
                      .values = Identities(store, accumulators),
                      .conditions = place_conditions,
                      .may_leave_garbage = true};
      std::vector<std::pair<AtomId, Index>> renamed;
      std::vector<StmtId> loops;
      for (StmtId loop : tile) {
        loops.push_back(p_.AddCopy(loop, "_first", renamed));
      }
      const auto rename = [&](const Index& index) { return p_.atoms.Substitute(index, renamed); };
      for (Index& index : init_store.indices) index = rename(index);
      for (ir::Condition& condition : init_store.conditions)
        condition.index = rename(condition.index);
      StmtId init = p_.Nest(loops, p_.Add(std::move(init_store)));
      for (size_t c = is_first.size(); c-- > 0;) {
        // Loads in the else branches: if any condition fails, this is a later step.
        init =
            p_.Add({.kind = Stmt::Kind::kIf, .children = {init, load}, .condition = is_first[c]});
      }
      load = init;
    }
    const StmtId store_back = copy(false);

    std::vector<ir::ExprId> added;
    for (size_t c = 0; c < accumulators.size(); ++c) {
      const bool widens = DTypeOf(accumulators[c]) != DTypeOf(store.outputs[c]);
      added.push_back(widens ? p_.pool.Widened(store.values[c]) : store.values[c]);
    }
    Stmt& update = p_.stmts[site.store];
    update.values = std::move(added);
    update.outputs = accumulators;
    update.indices = places;
    update.has_init = false;
    update.may_leave_garbage = true;
    // The update repeats these conditions so that NarrowDomain handles all three together.
    update.conditions.insert(update.conditions.end(), implied.begin(), implied.end());
    // The sequence takes the loop's slot; the loop itself moves to a new one.
    const StmtId outer = site.loops[first];
    const Stmt loop_copy = p_.stmts[outer];
    const StmtId inner = p_.Add(loop_copy);
    p_.stmts[outer] = Stmt{.kind = Stmt::Kind::kSeq, .children = {load, inner, store_back}};
    return first;
  }

  LoweredProgram& p_;
  std::vector<StmtId> loops_;
  std::vector<Site> sites_;
};

}  // namespace

absl::Status PromoteAccumulators(LoweredProgram& program) { return Promoter(program).Run(); }

}  // namespace hone::lower
