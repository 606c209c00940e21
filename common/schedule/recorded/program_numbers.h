#ifndef HONE_COMMON_SCHEDULE_RECORDED_PROGRAM_NUMBERS_H_
#define HONE_COMMON_SCHEDULE_RECORDED_PROGRAM_NUMBERS_H_

#include "common/ir/program.h"

namespace hone::ir {

// Visits each number of a program that text, digest or features can depend on, in an order that is
// the same for programs that differ in numbers alone; a number may come more than once. `Visit` has
// Number(const int64_t&), a part of the program, and Constant(const Index&): the constant of an
// index that is one. Compiled twice, see prelude.h.
template <typename Visit>
class NumbersOf {
 public:
  NumbersOf(const Program& program, Visit& visit) : program_(program), visit_(visit) {
    for (const NodeId kernel : program.kernels) Walk(kernel);
  }

 private:
  void Of(const Index& index) {
    visit_.Constant(index);
    for (const IndexTerm& term : index.terms()) {
      visit_.Number(term.coeff);
      const Atom& atom = program_.atoms[term.atom];
      if (atom.kind == Atom::Kind::kVar) continue;
      visit_.Number(atom.divisor);
      Of(atom.argument);
    }
  }
  void Of(const std::vector<Condition>& conditions) {
    for (const Condition& condition : conditions) {
      Of(condition.index);
      visit_.Number(condition.extent);
    }
  }
  void OfDomain(AtomId var) {
    visit_.Number(program_.atoms[var].range.min);
    visit_.Number(program_.atoms[var].range.max);
  }
  void Of(BufferId buffer) {
    for (const auto& extent : program_.buffers[buffer].shape) visit_.Number(extent);
    for (const StorageAlign& align : program_.buffers[buffer].aligns) {
      visit_.Number(align.factor);
      visit_.Number(align.offset);
    }
  }
  void OfBlock(const Block& block) {
    for (const BlockIter& iter : block.iters) {
      OfDomain(iter.var);
      visit_.Number(iter.extent);
      Of(iter.binding);
    }
    for (const BufferId output : block.outputs) Of(output);
    for (const Index& index : block.indices) Of(index);
    for (const ExprId value : block.values) {
      program_.pool.Visit(value, [&](const Expr& expr) {
        if (expr.op == Op::kLoad) Of(expr.buffer);
        if (expr.indices < 0) return;
        for (const Index& index : program_.pool.IndicesOf(expr)) Of(index);
      });
    }
    Of(block.guards);
    Of(block.predicates);
  }
  void Walk(NodeId id) {
    const Node& node = program_.node(id);
    if (node.kind == Node::Kind::kLoop) {
      visit_.Number(node.extent.value);
      OfDomain(node.var);
    }
    if (node.kind == Node::Kind::kBlock) OfBlock(program_.BlockOf(id));
    for (const Annotation& annotation : node.annotations) visit_.Number(annotation.value);
    for (const NodeId child : node.children) Walk(child);
  }

  const Program& program_;
  Visit& visit_;
};

}  // namespace hone::ir

#endif  // HONE_COMMON_SCHEDULE_RECORDED_PROGRAM_NUMBERS_H_
