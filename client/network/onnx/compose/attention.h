#ifndef HONE_CLIENT_NETWORK_ONNX_COMPOSE_ATTENTION_H_
#define HONE_CLIENT_NETWORK_ONNX_COMPOSE_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "client/network/onnx/rewrite.h"

// Attention as products, a softmax and nodes between them, which the partition fuses.
namespace hone::onnx {

// The largest number of tokens whose positions the importer makes.
inline constexpr int64_t kMaxPositions = int64_t{1} << 24;

// Which keys the queries may see, by their positions.
struct Visible {
  bool is_causal = false;
  int64_t left = -1, right = -1;  // keys that many positions before or after; -1: no limit
  // The position of the first query: a number or, for each batch, a value i64[batch, 1, 1, 1].
  int64_t offset = 0;
  graph::ValueId offsets = graph::kNoValue;
  // The number of keys that exist, i64[batch, 1, 1, 1]; kNoValue: all.
  graph::ValueId lengths = graph::kNoValue;

  // The last position that a query may see, relative to its own; nullopt: no limit.
  std::optional<int64_t> Last() const {
    if (is_causal) return 0;
    return right >= 0 ? std::optional(right) : std::nullopt;
  }
};

// Returns a mask bool[batch or 1, 1, queries or 1, keys], or kNoValue if all pairs are visible.
// Unimplemented: it is too large.
absl::StatusOr<graph::ValueId> MaskOf(Rewrite& rewrite, const Visible& visible, int64_t queries,
                                      int64_t keys);
// The conjunction of two masks that may be kNoValue.
absl::StatusOr<graph::ValueId> BothTrue(Rewrite& rewrite, graph::ValueId a, graph::ValueId b);

// Converts [batch, sequence, heads * size] to [batch, heads, sequence, size], and back. REQUIRES:
// the number of heads divides the last extent.
absl::StatusOr<graph::ValueId> SplitHeads(Rewrite& rewrite, graph::ValueId joined, int64_t heads);
absl::StatusOr<graph::ValueId> JoinHeads(Rewrite& rewrite, graph::ValueId split);

// Attention of queries [batch, heads, queries, size] to keys and values [batch, kv_heads, keys,
// size], where each head of keys serves heads / kv_heads heads of queries.
struct Heads {
  graph::ValueId q = graph::kNoValue, k = graph::kNoValue, v = graph::kNoValue;
  std::optional<double> scale;  // 1 / sqrt(size) by default
  double softcap = 0;           // 0: none
  // Are broadcast to the scores [batch, heads, queries, keys]; kNoValue if absent.
  graph::ValueId bias = graph::kNoValue;     // is added
  graph::ValueId allowed = graph::kNoValue;  // bool
  // Whether a query may see no key; its result is then 0.
  bool may_see_none = false;
  // Which scores are the second result: -1: none; or qk_matmul_output_mode of ONNX.
  int64_t scores = -1;
};

struct Attended {
  graph::ValueId y = graph::kNoValue;  // [batch, heads, queries, size of values]
  graph::ValueId scores = graph::kNoValue;
};

// Adds softmax(scale * Q * K' + bias) * V. InvalidArgument: the types do not fit.
absl::StatusOr<Attended> Attend(Rewrite& rewrite, const Heads& heads);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_COMPOSE_ATTENTION_H_
