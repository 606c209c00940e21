#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/cases.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/tensor_nest.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Index;
using ir::NodeId;

namespace {

constexpr int kMaxNodes = 4096;

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
                const bool own =
                    std::any_of(content.iters.begin(), content.iters.end(),
                                [&](const ir::BlockIter& iter) { return iter.var == var; });
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
    const bool own =
        std::any_of(content.iters.begin(), content.iters.end(),
                    [&](const ir::BlockIter& iter) { return index.SingleAtom() == iter.var; });
    if (!own)
      return Illegal(program, block,
                     "compute_inline: the block does not write at its own iteration variables");
  }
  for (const ir::BlockIter& iter : content.iters) {
    const bool told =
        std::any_of(content.indices.begin(), content.indices.end(),
                    [&](const Index& index) { return index.SingleAtom() == iter.var; });
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

absl::Status ApplyComputeInline(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  return ComputeInline(call.program(), block);
}

}  // namespace hone::schedule
