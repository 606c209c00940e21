// MatMulNBits of com.microsoft: a product with weights of 4 or 8 bits in blocks.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::NodeView;
using graph::TensorType;
using graph::ValueId;

// Rows of packed elements as ONNX Runtime stores them.
struct PackedRows {
  int64_t rows = 0, columns = 0;
  int64_t stored = 0;  // columns of a stored row, which may end with unused ones
  int64_t bits = 4;    // of an element; the first one of a byte is in its low bits
};

// Returns the elements as [columns, rows], which is the order of the operands of a matrix product.
// `flip`: bits that are inverted in every element. It is computed when it is first read.
graph::ConstantData TransposedElements(const graph::ConstantData& source, const PackedRows& from,
                                       int flip) {
  const Digest recipe = DigestBuilder()
                            .Add("transposed")
                            .Add(source.origin())
                            .Add(from.rows)
                            .Add(from.columns)
                            .Add(from.stored)
                            .Add(from.bits)
                            .Add(int64_t{flip})
                            .Finish();
  const int64_t size = (from.rows * from.columns * from.bits + 7) / 8;
  return graph::ConstantData::Computed(recipe, size, [=] {
    const absl::string_view bytes = source.bytes();
    std::string result(size, '\0');
    // A square of elements is in the cache while it is transposed.
    constexpr int64_t kSquare = 64;
    for (int64_t first = 0; first < from.columns; first += kSquare) {
      const int64_t end = std::min(from.columns, first + kSquare);
      for (int64_t row = 0; row < from.rows; ++row) {
        for (int64_t column = first; column < end; ++column) {
          const int64_t in = row * from.stored + column, out = column * from.rows + row;
          if (from.bits == 8) {
            result[out] = static_cast<char>(bytes[in] ^ flip);
            continue;
          }
          const int element = ((static_cast<unsigned char>(bytes[in / 2]) >> (in % 2 * 4)) & 15);
          result[out / 2] = static_cast<char>(static_cast<unsigned char>(result[out / 2]) |
                                              (element ^ flip) << (out % 2 * 4));
        }
      }
    }
    return result;
  });
}

// The attributes of a node, and the shapes that follow from them.
struct Blocks {
  int64_t inner = 0, columns = 0;  // the weights are [columns, inner], in rows of blocks
  int64_t bits = 4, size = 0;
  int64_t count() const { return (inner + size - 1) / size; }

  static absl::StatusOr<Blocks> Of(const NodeView& node) {
    Blocks blocks;
    HONE_ASSIGN_OR_RETURN(blocks.inner, node.Int("K", 0));
    HONE_ASSIGN_OR_RETURN(blocks.columns, node.Int("N", 0));
    HONE_ASSIGN_OR_RETURN(blocks.bits, node.Int("bits", 4));
    HONE_ASSIGN_OR_RETURN(blocks.size, node.Int("block_size", 0));
    constexpr int64_t kMost = int64_t{1} << 28;
    if (blocks.bits != 4 && blocks.bits != 8) {
      return node.UnimplementedError(
          absl::StrCat("weights of ", blocks.bits, " bits are not supported"));
    }
    const bool is_power = blocks.size > 0 && (blocks.size & (blocks.size - 1)) == 0;
    if (!is_power || blocks.size < 16 || blocks.size > kMost) {
      return node.InvalidError(
          absl::StrCat("block_size is ", blocks.size, ", but must be a power of 2 from 16 on"));
    }
    if (blocks.inner <= 0 || blocks.columns <= 0 || blocks.inner > kMost ||
        blocks.columns > kMost) {
      return node.InvalidError(absl::StrCat("K is ", blocks.inner, " and N ", blocks.columns));
    }
    return blocks;
  }
};

// The scales as [blocks, columns].
absl::StatusOr<ValueId> BlockScales(Rewrite& rewrite, const Blocks& blocks, ValueId given) {
  HONE_ASSIGN_OR_RETURN(const ValueId rows,
                        rewrite.Reshape(given, {blocks.columns, blocks.count()}));
  return rewrite.Apply("Transpose", {rows}, {{"perm", std::vector<int64_t>{1, 0}}});
}

absl::Status CheckElements(const NodeView& node, int input, int64_t elements) {
  if (node.Type(input).elements() == elements) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText(),
                                        " instead of ", elements, " elements"));
}

absl::Status CheckConstantBytes(const NodeView& node, int input, int64_t elements) {
  HONE_RETURN_IF_ERROR(CheckElements(node, input, elements));
  if (node.Type(input).dtype != ir::DType::kU8) {
    return node.UnimplementedError(absl::StrCat("input ", input, " is ", node.Type(input).ToText(),
                                                "; only packed bytes (u8) are supported"));
  }
  if (node.IsConstant(input)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      node.InvalidError(absl::StrCat("input ", input, " must be constant")).message());
}

}  // namespace

// The elements of rows of blocks are transposed at import, so that the columns of the product are
// contiguous, as in other products. Without zero points, the elements are signed instead of having
// the zero point 8 or 128.
Composed ComposeMatMulNBits(Rewrite& rewrite) {
  enum Input { kA, kB, kScales, kZeros, kGroups, kBias };
  const NodeView view = rewrite.view();
  HONE_ASSIGN_OR_RETURN(const Blocks blocks, Blocks::Of(view));
  HONE_ASSIGN_OR_RETURN(const int64_t prepacked, view.Int("weight_prepacked", 0));
  if (view.Has(kGroups) || prepacked != 0) {
    return view.UnimplementedError("g_idx and weight_prepacked are not supported");
  }
  const int64_t per_byte = 8 / blocks.bits;
  HONE_RETURN_IF_ERROR(
      CheckConstantBytes(view, kB, blocks.columns * blocks.count() * (blocks.size / per_byte)));
  HONE_RETURN_IF_ERROR(CheckElements(view, kScales, blocks.columns * blocks.count()));
  const bool has_zeros = view.Has(kZeros);
  const PackedRows weights{.rows = blocks.columns,
                           .columns = blocks.inner,
                           .stored = blocks.count() * blocks.size,
                           .bits = blocks.bits};
  const ir::DType dtype = blocks.bits == 4 ? (has_zeros ? ir::DType::kU4 : ir::DType::kI4)
                                           : (has_zeros ? ir::DType::kU8 : ir::DType::kI8);
  const int flip = has_zeros ? 0 : 1 << (blocks.bits - 1);
  std::vector<ValueId> inputs = {
      rewrite.input(kA),
      rewrite.Constant("weights", {dtype, {blocks.inner, blocks.columns}},
                       TransposedElements(rewrite.ElementsOf(rewrite.input(kB)), weights, flip))};
  HONE_ASSIGN_OR_RETURN(inputs.emplace_back(),
                        BlockScales(rewrite, blocks, rewrite.input(kScales)));
  if (has_zeros) {
    const PackedRows zeros{.rows = blocks.columns,
                           .columns = blocks.count(),
                           .stored = (blocks.count() + per_byte - 1) / per_byte * per_byte,
                           .bits = blocks.bits};
    HONE_RETURN_IF_ERROR(CheckConstantBytes(view, kZeros, zeros.rows * zeros.stored / per_byte));
    inputs.push_back(
        rewrite.Constant("zeros", {dtype, {blocks.count(), blocks.columns}},
                         TransposedElements(rewrite.ElementsOf(rewrite.input(kZeros)), zeros, 0)));
  }
  ValueId y = kNoValue;
  if (HasExtremeScale(rewrite.graph(), rewrite.input(kScales))) {
    // The weights become floats now.
    HONE_ASSIGN_OR_RETURN(const ValueId floats,
                          rewrite.Apply("DequantizeLinear", {inputs.begin() + 1, inputs.end()},
                                        {{"axis", int64_t{0}}, {"block_size", blocks.size}}));
    HONE_ASSIGN_OR_RETURN(y, rewrite.Apply("MatMul", {inputs[0], floats}));
  } else {
    HONE_ASSIGN_OR_RETURN(y, rewrite.Apply("com.microsoft.MatMulNBits", std::move(inputs),
                                           {{"block_size", blocks.size}}));
  }
  if (view.Has(kBias)) {
    HONE_ASSIGN_OR_RETURN(y, rewrite.Apply("Add", {y, rewrite.input(kBias)}));
  }
  return std::vector{y};
}

}  // namespace hone::onnx
