#ifndef HONE_CLIENT_NETWORK_GRAPH_PADDING_NUMBERS_H_
#define HONE_CLIENT_NETWORK_GRAPH_PADDING_NUMBERS_H_

#include "absl/functional/function_ref.h"
#include "client/network/graph/graph.h"

// What is known of the numbers that a network computes at the padding. There, 0 times infinity
// would change a sum. Overflows are not considered.
namespace hone::graph {

struct PaddingNumbers {
  // Whether they are finite: not for sure; if the network makes finite numbers of those that a
  // caller gives, because no constant makes them infinite; or for sure.
  enum class Finite { kNo, kAssumed, kProven };
  enum class Sign { kAny, kNotNegative, kPositive };
  Finite finite = Finite::kProven;
  Sign sign = Sign::kAny;
};

// The numbers of the results of a node. `numbers_of`: those of an input that is not constant.
// `reads_table`: whether rows of tables are read that other positions might not read.
PaddingNumbers NumbersAfter(const Graph& graph, const Node& node, bool reads_table,
                            absl::FunctionRef<PaddingNumbers(ValueId)> numbers_of);

// Whether all elements of a constant are as wanted. False: it is not constant.
bool AreAllElements(const Graph& graph, ValueId id, absl::FunctionRef<bool(double)> wanted);

// Whether a node has one of these operators.
bool IsOneOf(const Node& node, std::initializer_list<absl::string_view> operators);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PADDING_NUMBERS_H_
