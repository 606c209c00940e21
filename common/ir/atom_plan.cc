#include "common/ir/atom_plan.h"

#include <functional>
#include <queue>

namespace hone::ir {

AtomPlan PlanAtoms(const AtomTable& atoms, absl::Span<const AtomId> vars,
                   const std::vector<std::vector<AtomId>>& sums) {
  const int count = atoms.size();
  std::vector<std::vector<AtomId>> after(count);
  std::vector<int> before(count, 0);
  const auto follows = [&](AtomId first, AtomId second) {
    if (first == second) return;
    after[first].push_back(second);
    ++before[second];
  };
  for (const std::vector<AtomId>& sum : sums) {
    for (size_t i = 1; i < sum.size(); ++i) follows(sum[i - 1], sum[i]);
  }
  for (AtomId id = 0; id < count; ++id) {
    for (const IndexTerm& term : atoms[id].argument.terms()) follows(term.atom, id);
  }
  std::priority_queue<AtomId, std::vector<AtomId>, std::greater<>> ready;
  for (AtomId id = 0; id < count; ++id) {
    if (before[id] == 0) ready.push(id);
  }
  std::vector<AtomId> order;
  std::vector<bool> placed(count, false);
  while (!ready.empty()) {
    const AtomId id = ready.top();
    ready.pop();
    order.push_back(id);
    placed[id] = true;
    for (const AtomId next : after[id]) {
      if (--before[next] == 0) ready.push(next);
    }
  }
  for (AtomId id = 0; id < count; ++id) {
    if (!placed[id]) order.push_back(id);
  }
  AtomPlan plan;
  std::vector<AtomId> renamed(count, kNoAtom);
  for (const AtomId id : order) {
    const Atom& atom = atoms[id];
    if (atom.kind == Atom::Kind::kVar) {
      renamed[id] = plan.atoms.AddVar(atom.name, atom.range.extent());
      continue;
    }
    Index argument(atom.argument.constant());
    for (const IndexTerm& term : atom.argument.terms())
      argument += Index::Of(renamed[term.atom], term.coeff);
    renamed[id] = plan.atoms.Intern(atom.kind, argument, atom.divisor).terms()[0].atom;
  }
  for (const AtomId var : vars) plan.vars.push_back(renamed[var]);
  return plan;
}

}  // namespace hone::ir
