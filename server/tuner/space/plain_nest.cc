#include "server/tuner/space/plain_nest.h"

#include <algorithm>
#include <vector>

namespace hone::space {
namespace {

constexpr int64_t kMostPlanes = 8;  // loops over planes are unrolled
// CPUs gather elements of so many bytes. Gathering them from all planes at once is faster than
// scattering what was read from each.
constexpr int kLeastGathered = 4;

// The divisor if the index has a division of the variable of this kind, else 1.
int64_t DivisorOf(const ir::AtomTable& atoms, const ir::Index& index, ir::AtomId var,
                  ir::Atom::Kind kind) {
  for (const ir::IndexTerm& term : index.terms()) {
    const ir::Atom& atom = atoms[term.atom];
    if (atom.kind == kind && term.coeff == 1 && atom.argument.SingleAtom() == var)
      return atom.divisor;
  }
  return 1;
}

}  // namespace

using schedule::Operand;

int64_t PlanesOf(const ir::Program& program, const ir::Block& block) {
  ir::AtomId last = ir::kNoAtom;
  for (const ir::BlockIter& iter : block.iters) {
    if (iter.reduce) return 1;
    last = iter.var;
  }
  if (last == ir::kNoAtom || block.values.size() != 1) return 1;
  int64_t planes = 1;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList indices = program.pool.IndicesOf(load);
    if (indices.empty() || ir::DTypeBytes(load.dtype) >= kLeastGathered) return;
    const int64_t divisor =
        DivisorOf(program.atoms, indices.back(), last, ir::Atom::Kind::kFloorDiv);
    const auto chooses = [&](const ir::Index& index) {
      return DivisorOf(program.atoms, index, last, ir::Atom::Kind::kMod) == divisor;
    };
    const bool has_planes = divisor > 1 && divisor <= kMostPlanes &&
                            std::any_of(indices.begin(), indices.end() - 1, chooses);
    if (has_planes) planes = divisor;
  });
  return planes;
}

void SchedulePlainNest(schedule::TraceBuilder& trace, const Operand& block_register,
                       const ir::Block& block, int64_t lanes, bool sampled, int64_t planes) {
  const int iters = static_cast<int>(block.iters.size());
  if (iters == 0) return;
  const std::vector<Operand> loops = trace.Add("loops", {block_register}, {}, iters);
  std::vector<int> spatial;
  std::vector<Operand> reductions;
  for (int i = 0; i < iters; ++i) {
    if (block.iters[i].reduce) {
      reductions.push_back(loops[i]);
    } else {
      spatial.push_back(i);
    }
  }
  if (spatial.empty()) return;  // one element: nothing to parallelize
  const int last = spatial.back();
  spatial.pop_back();
  std::vector<Operand> outer;
  for (int axis : spatial) outer.push_back(loops[axis]);

  int64_t extent = block.iters[last].extent;
  Operand longest = loops[last];
  std::vector<Operand> unrolled;
  if (planes > 1) {
    const std::vector<Operand> parts =
        trace.Add("split", {longest, schedule::Number(0), schedule::Number(planes)}, {}, 2);
    extent = ir::CeilDivInt(extent, planes);
    longest = parts[0];
    unrolled.push_back(parts[1]);
  }
  std::vector<Operand> inner = unrolled;
  if (extent > lanes) {
    constexpr int64_t kVectors[] = {1, 2, 4, 8};
    std::vector<int64_t> candidates;
    for (int64_t vectors : kVectors) {
      if (vectors * lanes <= extent) candidates.push_back(vectors);
    }
    if (sampled && reductions.empty() && candidates.size() > 1) {
      const Operand vectors = trace.Add("sample_categorical", {}, {{"candidates", candidates}})[0];
      const std::vector<Operand> parts = trace.Add(
          "split", {longest, schedule::Number(0), vectors, schedule::Number(lanes)}, {}, 3);
      outer.push_back(parts[0]);
      unrolled.push_back(parts[1]);
      inner.insert(inner.end(), {parts[1], parts[2]});
    } else {
      const std::vector<Operand> parts =
          trace.Add("split", {longest, schedule::Number(0), schedule::Number(lanes)}, {}, 2);
      outer.push_back(parts[0]);
      inner.push_back(parts[1]);
    }
  } else {
    inner.push_back(longest);
  }
  std::vector<Operand> order = outer;
  order.insert(order.end(), reductions.begin(), reductions.end());
  order.insert(order.end(), inner.begin(), inner.end());
  if (order.size() > 1) trace.Add("reorder", order);
  for (const Operand& loop : unrolled) trace.Add("unroll", {loop});
  trace.Add("vectorize", {inner.back()});
  if (outer.empty()) return;
  Operand fused = outer.size() > 1 ? trace.Add("fuse", outer)[0] : outer[0];
  if (sampled) {
    const std::vector<Operand> sizes = trace.Add("sample_tile", {fused}, {{"parts", {2}}});
    fused = trace.Add("split", {fused, sizes[0], sizes[1]}, {}, 2)[0];
  }
  trace.Add("parallel", {fused});
}

}  // namespace hone::space
