#include "server/tuner/feature/fused_sweeps.h"

#include <algorithm>

namespace hone::feature {
namespace {

// Returns c if the index is p / c for the loop's variable p, and 0 for others.
int64_t StepsPerValue(const ir::AtomTable& atoms, const ir::Index& index, const NestLoop& loop) {
  if (index.terms().size() != 1 || index.terms()[0].coeff != 1) return 0;
  const ir::Atom& atom = atoms[index.terms()[0].atom];
  if (index.terms()[0].atom == loop.var) return 1;
  if (atom.kind != ir::Atom::Kind::kFloorDiv) return 0;
  return StepsPerValue(atoms, atom.argument, loop) * atom.divisor;
}

// Returns after how many iterations of a loop an index starts again; the loop's extent if it does
// not.
int64_t PeriodOf(const ir::AtomTable& atoms, const ir::Index& index, const NestLoop& loop) {
  int64_t period = 1;
  for (const ir::IndexTerm& term : index.terms()) {
    const ir::Atom& atom = atoms[term.atom];
    if (!atoms.DependsOn(ir::Index::Of(term.atom), loop.var)) continue;
    int64_t own = loop.extent;
    if (atom.kind == ir::Atom::Kind::kMod) {
      const int64_t step = StepsPerValue(atoms, atom.argument, loop);
      if (step > 0) own = std::min(own, step * atom.divisor);
    }
    period = std::max(period, own);
  }
  return period;
}

}  // namespace

double SweepsOf(const ir::AtomTable& atoms, const Statement& statement, const Access& access,
                const NestLoop& loop) {
  int64_t period = 1;  // of the positions of the access
  for (const ir::Index& index : *access.indices[0]) {
    for (const ir::BlockIter& iter : statement.block->iters) {
      if (atoms.DependsOn(index, iter.var))
        period = std::max(period, PeriodOf(atoms, iter.binding, loop));
    }
  }
  return static_cast<double>(loop.extent) / static_cast<double>(period);
}

}  // namespace hone::feature
