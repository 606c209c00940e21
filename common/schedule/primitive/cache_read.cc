#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/copy_nest.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::StatusOr<NodeId> CacheRead(ir::Program& program, NodeId block, absl::string_view buffer_name,
                                 ir::Scope scope) {
  const auto found = std::find_if(program.buffers.begin(), program.buffers.end(),
                                  [&](const ir::Buffer& b) { return b.name == buffer_name; });
  const auto buffer = static_cast<ir::BufferId>(found - program.buffers.begin());
  if (found == program.buffers.end() || !program.Reads(program.BlockOf(block), buffer)) {
    return Illegal(
        program, block,
        absl::StrCat("cache_read: the block reads no buffer called ", buffer_name.substr(0, 64)));
  }
  if (program.Gathers(program.BlockOf(block), buffer)) {
    return Illegal(program, block,
                   absl::StrCat("cache_read: the block reads ", program.buffers[buffer].name,
                                " at computed indices"));
  }
  NodeId nest = block;  // the reader's nest in its kernel
  while (program.node(program.node(nest).parent).kind != ir::Node::Kind::kKernel)
    nest = program.node(nest).parent;
  for (NodeId writer : program.WritersOf(buffer)) {
    if (program.IsUnder(writer, nest)) {
      return Illegal(program, writer,
                     "cache_read: the buffer is computed in the reader's own nest");
    }
    if (!program.BlockOf(writer).exact)
      return Illegal(program, writer,
                     "cache_read: the buffer is computed only as far as other blocks need");
  }
  const ir::Buffer source = program.buffers[buffer];
  if (source.padded)
    return Illegal(program, block,
                   absl::StrCat("cache_read: ", source.name, " is stored with padding"));
  // Only copies in scope global are made ahead of time. Others are made while the kernel runs.
  const bool ahead = source.constant && scope == ir::Scope::kGlobal;
  if (scope != ir::Scope::kGlobal &&
      program.node(program.KernelOf(block)).name == ir::kPrepackKernel) {
    return Illegal(program, block,
                   absl::StrCat("cache_read: ", source.name,
                                " is read ahead of time; its copy has scope global"));
  }
  program.buffers.push_back({.name = program.FreshBufferName(absl::StrCat(source.name, "_copy")),
                             .dtype = ir::LoadedAs(source.dtype),
                             .shape = source.shape,
                             .scope = scope,
                             .constant = ahead});
  const auto copy = static_cast<ir::BufferId>(program.buffers.size()) - 1;
  for (ir::ExprId& value : program.BlockOf(block).values) {
    value = program.pool.Rewrite(
        value,
        [&](const ir::Expr& load) {
          return load.buffer == buffer
                     ? program.pool.Load(copy, load.dtype,
                                         ir::IndexList(program.pool.IndicesOf(load)))
                     : ir::kNoExpr;
        },
        [](const ir::Index& index) { return index; });
  }
  const CopyPlace place = PlaceOfCopy(program, nest, ahead);
  return AddCopyNest(program, buffer, copy, place.parent, place.position);
}

absl::Status ApplyCacheRead(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const std::string buffer, call.Text(1));
  HONE_ASSIGN_OR_RETURN(const std::string scope_name, call.Text(2));
  HONE_ASSIGN_OR_RETURN(const ir::Scope scope, ScopeFromName(scope_name));
  HONE_ASSIGN_OR_RETURN(const NodeId copy, CacheRead(call.program(), block, buffer, scope));
  return call.Return({copy});
}

}  // namespace hone::schedule
