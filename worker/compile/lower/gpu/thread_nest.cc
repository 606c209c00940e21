#include "worker/compile/lower/gpu/thread_nest.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace hone::lower {

using ir::AtomId;
using ir::Index;
using ir::NodeId;

int Dimension(ir::ThreadAxis axis) {
  const auto first = IsBlockAxis(axis) ? ir::ThreadAxis::kBlockX : ir::ThreadAxis::kThreadX;
  return static_cast<int>(axis) - static_cast<int>(first);
}

bool HasThreadLoop(const ir::Program& program, NodeId id, bool self) {
  if (self && IsBoundTo(program, id, ir::IsThreadAxis)) return true;
  return std::ranges::any_of(program.node(id).children, [&](NodeId child) {
    return HasThreadLoop(program, child, /*self=*/true);
  });
}

bool IsWithinThread(const ir::Program& program, const std::vector<NodeId>& blocks, NodeId loop) {
  return std::ranges::none_of(blocks, [&](NodeId block) {
    for (NodeId at = program.node(block).parent; at != loop; at = program.node(at).parent) {
      if (IsBoundTo(program, at, ir::IsThreadAxis)) return true;
    }
    return false;
  });
}

ThreadVars ThreadVarsOf(const ir::Program& program, NodeId kernel) {
  ThreadVars threads;
  threads.innermost = kernel;
  for (NodeId at = kernel; program.node(at).children.size() == 1;) {
    at = program.node(at).children[0];
    const bool thread = IsBoundTo(program, at, ir::IsThreadAxis);
    if (!thread && !IsBoundTo(program, at, ir::IsBlockAxis)) break;
    if (thread) threads.vars[Dimension(program.node(at).axis)] = program.node(at).var;
    threads.innermost = at;
  }
  return threads;
}

std::vector<Access> AccessesOf(ir::Program& program, NodeId scope, ir::BufferId buffer) {
  std::vector<Access> accesses;
  for (const NodeId id : program.BlocksUnder(scope)) {
    const ir::Block block = program.BlockOf(id);
    const auto over_loops = [&](const ir::IndexList& indices) {
      ir::IndexList over;
      for (const Index& index : indices) over.push_back(program.OverLoops(block, index));
      return over;
    };
    if (std::ranges::find(block.outputs, buffer) != block.outputs.end()) {
      accesses.push_back({id, true, false, over_loops(block.indices)});
    }
    for (const ir::ExprId value : block.values) {
      std::vector<std::pair<bool, ir::IndexList>> loads;
      program.pool.VisitLoads(value, [&](const ir::Expr& load) {
        if (load.buffer == buffer)
          loads.emplace_back(load.gathered >= 0, program.pool.IndicesOf(load));
      });
      for (const auto& [gathers, indices] : loads) {
        accesses.push_back({id, false, gathers, over_loops(indices)});
      }
    }
  }
  return accesses;
}

namespace {

struct Parts {
  Index low, thread;
};

// Divides an index into terms over threads, `thread`, and all other terms, `low`.
// Returns false if a term mixes them in a floordiv or mod, or if one has a negative coefficient.
bool Divide(const ir::AtomTable& atoms, const ThreadVars& threads, const Index& index,
            Parts& parts) {
  parts.low += index.constant();
  for (const ir::IndexTerm& term : index.terms()) {
    const Index part = Index::Of(term.atom, term.coeff);
    if (threads.Contains(term.atom)) {
      if (term.coeff < 0) return false;
      parts.thread += part;
      continue;
    }
    bool of_thread = false;
    atoms.VisitVars(part, [&](AtomId var) { of_thread |= threads.Contains(var); });
    if (of_thread) return false;
    parts.low += part;
  }
  return true;
}

// Whether different values of the variables give different sums, all multiples of the smallest
// coefficient. If so, sets `unit` to that coefficient and `end` to a number above every sum plus
// unit − 1.
bool IsMixedRadix(const ir::AtomTable& atoms, const Index& thread, int64_t& unit, int64_t& end) {
  std::vector<ir::IndexTerm> terms(thread.terms().begin(), thread.terms().end());
  std::ranges::sort(terms, {}, &ir::IndexTerm::coeff);
  unit = terms[0].coeff;
  end = unit;
  for (const ir::IndexTerm& term : terms) {
    if (term.coeff % unit != 0 || term.coeff < end) return false;
    end = term.coeff * atoms[term.atom].range.extent();
  }
  return true;
}

}  // namespace

std::vector<Digits> OwnersOf(const ir::Program& program, const ThreadVars& threads,
                             const std::vector<Access>& accesses) {
  if (accesses.empty()) return {};
  const ir::AtomTable& atoms = program.atoms;
  const size_t rank = accesses[0].indices.size();
  std::vector<Digits> digits(rank);
  std::vector<AtomId> seen;
  for (size_t d = 0; d < rank; ++d) {
    std::vector<Parts> parts(accesses.size());
    for (size_t a = 0; a < accesses.size(); ++a) {
      if (accesses[a].gathers) return {};
      if (!Divide(atoms, threads, accesses[a].indices[d], parts[a])) return {};
      if (parts[a].thread != parts[0].thread) return {};
    }
    Digits& digit = digits[d];
    digit.thread = parts[0].thread;
    if (digit.thread.IsConstant()) continue;
    for (const ir::IndexTerm& term : digit.thread.terms()) seen.push_back(term.atom);
    int64_t end = 1;
    if (!IsMixedRadix(atoms, digit.thread, digit.unit, end)) return {};
    // The other terms are either below the unit or multiples of a period of at least `end`.
    digit.period = 0;
    for (const Parts& part : parts) {
      for (const ir::IndexTerm& term : part.low.terms()) {
        const int64_t coeff = std::abs(term.coeff);
        if (coeff >= end) digit.period = std::gcd(digit.period, coeff);
      }
    }
    if (digit.period == 0) digit.period = end;
    if (digit.period < end) return {};
    for (const Parts& part : parts) {
      Index low(part.low.constant() -
                ir::FloorDivInt(part.low.constant(), digit.period) * digit.period);
      for (const ir::IndexTerm& term : part.low.terms()) {
        if (term.coeff % digit.period != 0) low += Index::Of(term.atom, term.coeff);
      }
      const ir::Range range = atoms.RangeOf(low);
      if (range.min < 0 || range.max >= digit.unit) return {};
    }
  }
  // Threads along an axis that does not occur in the indices would share an element.
  for (const AtomId var : threads.vars) {
    if (var != ir::kNoAtom && std::ranges::find(seen, var) == seen.end()) return {};
  }
  return digits;
}

}  // namespace hone::lower
