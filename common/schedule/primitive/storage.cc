#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/primitive/tensorize.h"
#include "common/schedule/replay.h"

namespace hone::schedule {
namespace {

using ir::Index;
using ir::NodeId;

// A stored dimension: (variable / divisor) % modulus, or without the mod if modulus is 0.
struct Piece {
  int variable = 0;
  int64_t divisor = 1;
  int64_t modulus = 0;
};

absl::StatusOr<std::vector<Piece>> ParseMap(absl::string_view map,
                                            absl::Span<const int64_t> numbers, size_t rank) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout map \"", map.substr(0, 200), "\": ", what));
  };
  const size_t arrow = map.find("->");
  if (arrow == map.npos || map.find("->", arrow + 2) != map.npos)
    return error("expected \"variables -> dimensions\"");
  absl::InlinedVector<absl::string_view, 8> names;
  for (absl::string_view name : absl::StrSplit(map.substr(0, arrow), ','))
    names.push_back(absl::StripAsciiWhitespace(name));
  if (names.size() != rank)
    return error(absl::StrCat("names ", names.size(), " variables for a buffer of rank ", rank));
  std::vector<Piece> pieces;
  pieces.reserve(8);
  absl::InlinedVector<absl::string_view, 8> words;
  for (absl::string_view dimension : absl::StrSplit(map.substr(arrow + 2), ',')) {
    words.clear();
    for (absl::string_view word : absl::StrSplit(dimension, ' ', absl::SkipWhitespace()))
      words.push_back(word);
    if (words.empty()) return error("an empty dimension");
    Piece piece;
    const auto name = absl::c_find(names, words[0]);
    if (name == names.end()) return error(absl::StrCat("unknown variable '", words[0], "'"));
    piece.variable = static_cast<int>(name - names.begin());
    for (size_t w = 1; w < words.size(); w += 2) {
      if (w + 1 >= words.size()) return error("a dimension ends with an operator");
      int64_t value = 1;
      for (absl::string_view factor : absl::StrSplit(words[w + 1], '*')) {
        int64_t number = 0;
        uint32_t position = 0;
        if (absl::ConsumePrefix(&factor, "$")) {
          if (!absl::SimpleAtoi(factor, &position) || position >= numbers.size()) {
            return error(absl::StrCat("'", words[w + 1], "' names no number"));
          }
          number = numbers[position];
        } else if (!absl::SimpleAtoi(factor, &number)) {
          return error(absl::StrCat("'", words[w + 1], "' is not a number"));
        }
        if (number < 1 || number > ir::kMaxElements / value)
          return error("a divisor is out of range");
        value *= number;
      }
      if (value < 1 || value > ir::kMaxElements / piece.divisor)
        return error("a divisor is out of range");
      if (words[w] == "/" && piece.modulus == 0) {
        piece.divisor *= value;
      } else if (words[w] == "%" && piece.modulus == 0) {
        piece.modulus = value;
      } else {
        return error("a dimension is a variable, then '/ number', then '% number'");
      }
    }
    pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace

absl::Status SetScope(ir::Program& program, NodeId block, ir::Scope scope) {
  for (ir::BufferId id : program.BlockOf(block).outputs) {
    const ir::Buffer& buffer = program.buffers[id];
    if (buffer.output)
      return Illegal(program, block,
                     absl::StrCat("set_scope: ", buffer.name, " is an output of the workload"));
    if (program.node(program.KernelOf(block)).name == ir::kPrepackKernel) {
      return Illegal(program, block,
                     absl::StrCat("set_scope: ", buffer.name,
                                  " is computed ahead of time, so its scope must stay global"));
    }
  }
  for (ir::BufferId id : program.BlockOf(block).outputs) program.buffers[id].scope = scope;
  return absl::OkStatus();
}

absl::Status AlignStorage(ir::Program& program, NodeId block, ir::StorageAlign align) {
  constexpr int64_t kMaxFactor = 1 << 20;
  if (program.BlockOf(block).outputs.size() != 1)
    return Illegal(program, block, "storage_align: the block writes several buffers");
  const ir::BufferId id = program.BlockOf(block).outputs[0];
  ir::Buffer& buffer = program.buffers[id];
  if (buffer.output)
    return Illegal(program, block,
                   absl::StrCat("storage_align: ", buffer.name, " is an output of the workload"));
  for (NodeId user : program.AllBlocks()) {
    const auto& outputs = program.BlockOf(user).outputs;
    const bool uses =
        absl::c_linear_search(outputs, id) || program.Reads(program.BlockOf(user), id);
    if (uses && InTensorNest(program, user))
      return Illegal(program, user,
                     absl::StrCat("storage_align: a tensor nest uses ", program.buffers[id].name));
  }
  if (align.axis < 0 || align.axis + 1 >= static_cast<int>(buffer.shape.size())) {
    return Illegal(program, block,
                   absl::StrCat("storage_align: axis ", align.axis, " of ", buffer.name,
                                "; one before the last of ", buffer.shape.size()));
  }
  if (align.factor < 1 || align.factor > kMaxFactor || align.offset < 0 ||
      align.offset >= align.factor) {
    return Illegal(
        program, block,
        absl::StrCat("storage_align: factor ", align.factor, " and offset ", align.offset,
                     "; 1 to ", kMaxFactor, ", and the offset below the factor"));
  }
  auto at = absl::c_find_if(buffer.aligns,
                            [&](const ir::StorageAlign& a) { return a.axis >= align.axis; });
  if (at != buffer.aligns.end() && at->axis == align.axis) {
    *at = align;
  } else {
    buffer.aligns.insert(at, align);
  }
  return absl::OkStatus();
}

absl::Status ApplyStorageAlign(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const int axis, call.IntBetween(1, 0, ir::kMaxRank));
  HONE_ASSIGN_OR_RETURN(const ir::Extent factor, call.Int(2));
  HONE_ASSIGN_OR_RETURN(const ir::Extent offset, call.Int(3));
  return AlignStorage(call.program(), block, {axis, factor.value, offset.value});
}

absl::Status TransformLayout(ir::Program& program, NodeId block, absl::string_view map,
                             absl::Span<const int64_t> numbers) {
  if (program.BlockOf(block).outputs.size() != 1)
    return Illegal(program, block, "transform_layout: the block writes several buffers");
  const ir::BufferId buffer = program.BlockOf(block).outputs[0];
  const ir::Buffer old = program.buffers[buffer];
  if (old.input || old.output)
    return Illegal(program, block,
                   absl::StrCat("transform_layout: ", old.name, " is an input or output"));
  for (NodeId user : program.AllBlocks()) {
    const auto& outputs = program.BlockOf(user).outputs;
    const bool uses =
        absl::c_linear_search(outputs, buffer) || program.Reads(program.BlockOf(user), buffer);
    if (uses && InTensorNest(program, user))
      return Illegal(
          program, user,
          absl::StrCat("transform_layout: a tensor nest uses ", program.buffers[buffer].name));
  }
  if (!old.aligns.empty())
    return Illegal(
        program, block,
        absl::StrCat("transform_layout: the strides of ", old.name, " are aligned already"));
  HONE_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, ParseMap(map, numbers, old.shape.size()));
  if (pieces.size() > ir::kMaxRank)
    return Illegal(program, block, "transform_layout: too many dimensions");
  // The pieces of each variable, lowest first, must cover it without gap or overlap.
  for (size_t v = 0; v < old.shape.size(); ++v) {
    absl::InlinedVector<Piece, 4> own;
    for (const Piece& piece : pieces) {
      if (piece.variable == static_cast<int>(v)) own.push_back(piece);
    }
    absl::c_sort(own, [](const Piece& a, const Piece& b) {
      return std::pair(a.divisor, a.modulus != 1) < std::pair(b.divisor, b.modulus != 1);
    });
    int64_t covered = 1;
    for (const Piece& piece : own) {
      if (piece.divisor != covered)
        return Illegal(
            program, block,
            "transform_layout: the map does not send every element to a different place");
      covered = piece.modulus == 0 ? ir::kMaxDomain : covered * piece.modulus;
    }
    if (covered < old.shape[v])
      return Illegal(program, block,
                     "transform_layout: the map does not send every element to a different place");
  }
  ir::Shape shape;
  for (const Piece& piece : pieces) {
    const int64_t high = (old.shape[piece.variable] - 1) / piece.divisor;
    shape.push_back(piece.modulus == 0 ? high + 1 : std::min(high + 1, piece.modulus));
  }
  const auto stored = [&](const ir::IndexList& indices) {
    ir::IndexList result;
    for (const Piece& piece : pieces) {
      Index index = program.atoms.FloorDiv(indices[piece.variable], piece.divisor);
      if (piece.modulus > 0) index = program.atoms.Mod(index, piece.modulus);
      result.push_back(std::move(index));
    }
    return result;
  };
  for (ir::Block& user : program.blocks) {
    if (absl::c_linear_search(user.outputs, buffer)) user.indices = stored(user.indices);
    for (ir::ExprId& value : user.values) {
      value = program.pool.Rewrite(
          value,
          [&](const ir::Expr& load) {
            if (load.buffer != buffer) return ir::kNoExpr;
            const ir::IndexList indices = program.pool.IndicesOf(load);
            return program.pool.Load(buffer, load.dtype, stored(indices));
          },
          [](const Index& index) { return index; });
    }
  }
  program.buffers[buffer].padded |= ir::ElementsOf(shape) != ir::ElementsOf(old.shape);
  program.buffers[buffer].shape = std::move(shape);
  return absl::OkStatus();
}

}  // namespace hone::schedule
