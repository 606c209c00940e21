
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/ir/cases.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/tensorize.h"

namespace hone::schedule {
namespace {

using ir::AtomId;
using ir::BufferId;
using ir::Index;
using ir::NodeId;

constexpr int64_t kMaxNodes = 4096;  // of an expression

void Inline(ir::Program& program, NodeId block, const ir::Block& content,
            const std::vector<NodeId>& readers) {
  const ir::BufferId buffer = content.outputs[0];
  program.Detach(block);
  program.Remove(block);
  const auto keep = [](const Index& index) { return index; };
  for (NodeId reader : readers) {
    ir::Block& reading = program.BlockOf(reader);
    for (ir::ExprId& value : reading.values) {
      value = program.pool.Rewrite(
          value,
          [&](const ir::Expr& load) -> ir::ExprId {
            if (load.buffer != buffer) return ir::kNoExpr;
            const ir::IndexList indices = program.pool.IndicesOf(load);
            const auto substitute = [&](const Index& index) {
              return program.atoms.Substitute(index, [&](ir::AtomId var) -> const Index* {
                for (size_t d = 0; d < content.indices.size(); ++d) {
                  if (content.indices[d].SingleAtom() == var) return &indices[d];
                }
                // An iteration variable that no index determines has a single value, 0.
                static const Index* const zero = new Index(0);
                const bool own = absl::c_any_of(
                    content.iters, [&](const ir::BlockIter& iter) { return iter.var == var; });
                return own ? zero : nullptr;
              });
            };
            const ir::ExprId value = program.pool.Rewrite(
                content.values[0], [](const ir::Expr&) { return ir::kNoExpr; }, substitute);
            return program.pool.Rounded(value);  // as if stored in the buffer
          },
          keep);
    }
  }
}

// The last block before this one that computes an input of it, or kNoNode.
NodeId LastProducer(const ir::Program& program, NodeId block) {
  NodeId producer = ir::kNoNode;
  for (NodeId id : program.AllBlocks()) {
    if (id == block) break;
    for (BufferId output : program.BlockOf(id).outputs) {
      if (program.Reads(program.BlockOf(block), output)) producer = id;
    }
  }
  return producer;
}

// The consumer's iteration variables as functions of the element of T that it reads. `index` is one
// of them plus a constant.
struct Solved {
  AtomId var;
  Index value;  // over the producer's iteration variables
};

}  // namespace

absl::Status ComputeInline(ir::Program& program, NodeId block) {
  const ir::Block content = program.BlockOf(block);
  if (content.reducer != ir::Reducer::kNone)
    return Illegal(program, block, "compute_inline: the block reduces");
  if (InTensorNest(program, block))
    return Illegal(program, block, "compute_inline: the block is in a tensor nest");
  const ir::BufferId buffer = content.outputs[0];
  if (program.buffers[buffer].output) {
    return Illegal(program, block,
                   absl::StrCat("compute_inline: ", program.buffers[buffer].name,
                                " is an output of the workload"));
  }
  if (program.WritersOf(buffer).size() != 1)
    return Illegal(program, block, "compute_inline: another block writes the same buffer");
  for (const Index& index : content.indices) {
    const bool own = absl::c_any_of(
        content.iters, [&](const ir::BlockIter& iter) { return index.SingleAtom() == iter.var; });
    if (!own)
      return Illegal(program, block,
                     "compute_inline: the block does not write at its own iteration variables");
  }
  for (const ir::BlockIter& iter : content.iters) {
    const bool told = absl::c_any_of(
        content.indices, [&](const Index& index) { return index.SingleAtom() == iter.var; });
    if (!told && iter.extent > 1)
      return Illegal(program, block, "compute_inline: the block writes an element more than once");
  }
  const std::vector<NodeId> readers = program.ReadersOf(buffer);
  if (readers.empty()) return Illegal(program, block, "compute_inline: no block reads the result");
  // Inlining can grow exponentially: a chain of squares doubles with every stage.
  int nodes = 0;
  program.pool.Visit(content.values[0], [&](const ir::Expr&) { ++nodes; });
  const bool guarded = ir::HasGuardedValue(program.pool, content.values);
  for (NodeId reader : readers) {
    if (InTensorNest(program, reader))
      return Illegal(program, reader, "compute_inline: the reader is in a tensor nest");
    int64_t total = 0;
    for (ir::ExprId value : program.BlockOf(reader).values) {
      program.pool.Visit(value, [&](const ir::Expr& e) {
        total += e.op == ir::Op::kLoad && e.buffer == buffer ? nodes : 1;
      });
    }
    if (guarded && program.BlockOf(reader).reducer != ir::Reducer::kNone) {
      return Illegal(program, reader,
                     "compute_inline: the reader reduces, and the block computes guarded values");
    }
    if (total > kMaxNodes) {
      return Illegal(program, reader,
                     absl::StrCat("compute_inline: the reader's expression would have ", total,
                                  " nodes; at most ", kMaxNodes));
    }
  }
  if (guarded) {
    ir::Program copy = program;
    Inline(copy, block, content, readers);
    for (NodeId reader : readers) {
      if (!ir::CasesOf(copy.pool, copy.atoms, copy.BlockOf(reader).values).has_value()) {
        return Illegal(program, reader,
                       absl::StrCat("compute_inline: the reader's guarded values would have more "
                                    "than ",
                                    ir::kMaxCases, " cases"));
      }
    }
  }
  std::vector<NodeId> edited = readers;
  edited.push_back(block);
  return KeepConcurrencyLegal(program, edited,
                              [&](ir::Program& p) { Inline(p, block, content, readers); });
}

absl::Status ReverseComputeInline(ir::Program& program, NodeId block) {
  const ir::Block consumer = program.BlockOf(block);
  if (consumer.reducer != ir::Reducer::kNone)
    return Illegal(program, block, "reverse_compute_inline: the block reduces");
  if (InTensorNest(program, block))
    return Illegal(program, block, "reverse_compute_inline: the block is in a tensor nest");
  if (ir::HasGuardedValue(program.pool, consumer.values)) {
    return Illegal(program, block, "reverse_compute_inline: the block computes guarded values");
  }
  const BufferId result = consumer.outputs[0];
  if (program.WritersOf(result).size() != 1)
    return Illegal(program, block, "reverse_compute_inline: another block writes the same buffer");
  const NodeId producing = LastProducer(program, block);
  if (producing == ir::kNoNode)
    return Illegal(program, block, "reverse_compute_inline: the block reads no computed buffer");
  const ir::Block producer = program.BlockOf(producing);
  if (program.KernelOf(producing) != program.KernelOf(block)) {
    return Illegal(program, producing, "reverse_compute_inline: the producer is in another kernel");
  }
  if (InTensorNest(program, producing))
    return Illegal(program, producing, "reverse_compute_inline: the producer is in a tensor nest");
  if (producer.reducer != ir::Reducer::kNone)
    return Illegal(program, producing, "reverse_compute_inline: the producer reduces");
  const BufferId buffer = producer.outputs[0];
  const std::string name = program.buffers[buffer].name;
  if (program.buffers[buffer].output) {
    return Illegal(program, producing,
                   absl::StrCat("reverse_compute_inline: ", name, " is an output of the workload"));
  }
  if (program.WritersOf(buffer).size() != 1) {
    return Illegal(program, producing,
                   absl::StrCat("reverse_compute_inline: another block writes ", name));
  }
  for (NodeId reader : program.ReadersOf(buffer)) {
    if (reader != block)
      return Illegal(program, reader,
                     absl::StrCat("reverse_compute_inline: another block reads ", name));
  }
  // All other inputs must be complete when the producer runs.
  for (NodeId writer : program.AllBlocks()) {
    if (writer == producing) continue;
    for (BufferId output : program.BlockOf(writer).outputs) {
      if (!program.Reads(consumer, output)) continue;
      const bool before = program.KernelOf(writer) != program.KernelOf(producing) ||
                          program.NestOf(writer) != program.NestOf(producing);
      if (!before) {
        return Illegal(program, writer,
                       absl::StrCat("reverse_compute_inline: ", program.buffers[output].name,
                                    " is computed in the nest of the producer of ", name));
      }
    }
  }
  // The block reads one element, at constant distances from its own variables.
  ir::IndexList place;
  bool same = true;
  int64_t nodes = 0, loads = 0, producer_nodes = 0;
  program.pool.Visit(consumer.values[0], [&](const ir::Expr& e) {
    ++nodes;
    if (e.op != ir::Op::kLoad || e.buffer != buffer) return;
    same &= loads == 0 || place == program.pool.IndicesOf(e);
    place = program.pool.IndicesOf(e);
    ++loads;
  });
  if (!same)
    return Illegal(
        program, block,
        absl::StrCat("reverse_compute_inline: the block reads more than one element of ", name));
  program.pool.Visit(producer.values[0], [&](const ir::Expr&) { ++producer_nodes; });
  if (nodes + loads * producer_nodes > kMaxNodes) {
    return Illegal(program, block,
                   absl::StrCat("reverse_compute_inline: the expression would have ",
                                nodes + loads * producer_nodes, " nodes; at most ", kMaxNodes));
  }
  std::vector<Solved> solved;
  std::vector<ir::Condition> domain;  // over the producer's iteration variables
  for (size_t d = 0; d < place.size(); ++d) {
    const Index& index = place[d];
    if (index.IsConstant()) {
      domain.push_back({producer.indices[d] + -index.constant(), 1});
      continue;
    }
    const auto iter = absl::c_find_if(consumer.iters, [&](const ir::BlockIter& i) {
      return index.terms().size() == 1 && index.CoeffOf(i.var) == 1;
    });
    const bool taken = iter != consumer.iters.end() &&
                       absl::c_any_of(solved, [&](const Solved& s) { return s.var == iter->var; });
    if (iter == consumer.iters.end() || taken) {
      return Illegal(program, block,
                     absl::StrCat("reverse_compute_inline: the block does not read ", name,
                                  " at iteration variables of its own plus constants"));
    }
    solved.push_back({iter->var, producer.indices[d] + -index.constant()});
    domain.push_back({solved.back().value, iter->extent});
  }
  for (const ir::BlockIter& iter : consumer.iters) {
    if (absl::c_any_of(solved, [&](const Solved& s) { return s.var == iter.var; })) continue;
    if (iter.extent > 1) {
      return Illegal(program, block,
                     absl::StrCat("reverse_compute_inline: ", program.atoms[iter.var].name,
                                  " does not follow from what is read of ", name));
    }
    solved.push_back({iter.var, Index(0)});
  }
  return KeepConcurrencyLegal(program, {block, producing}, [&](ir::Program& p) {
    const auto replace = [&](const Index& index) {
      return p.atoms.Substitute(index, [&](AtomId var) -> const Index* {
        for (const Solved& s : solved) {
          if (s.var == var) return &s.value;
        }
        return nullptr;
      });
    };
    ir::Block fused = p.BlockOf(producing);
    const ir::ExprId produced = p.pool.Rounded(producer.values[0]);  // as if stored in the buffer
    fused.values[0] = p.pool.Rewrite(
        consumer.values[0],
        [&](const ir::Expr& load) { return load.buffer == buffer ? produced : ir::kNoExpr; },
        replace);
    fused.outputs = consumer.outputs;
    fused.indices.clear();
    for (const Index& index : consumer.indices) fused.indices.push_back(replace(index));
    for (const ir::Condition& condition : domain) {
      const ir::Range range = p.atoms.RangeOf(condition.index);
      if (range.min < 0 || range.max >= condition.extent) fused.guards.push_back(condition);
    }
    for (const ir::Condition& guard : consumer.guards) {
      fused.guards.push_back({replace(guard.index), guard.extent});
    }
    p.BlockOf(producing) = std::move(fused);
    p.Detach(block);
    p.Remove(block);
  });
}

}  // namespace hone::schedule
