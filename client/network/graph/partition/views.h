#ifndef HONE_CLIENT_NETWORK_GRAPH_PARTITION_VIEWS_H_
#define HONE_CLIENT_NETWORK_GRAPH_PARTITION_VIEWS_H_

#include <cstdint>
#include <vector>

#include "client/network/graph/graph.h"

namespace hone::graph {

// The values of a graph that share memory. Every value is a contiguous part of the memory of its
// owner; at first each owns its memory. Inputs, constants and outputs of the graph are outside: the
// caller provides their memory.
class Views {
 public:
  explicit Views(const Graph& graph);

  struct View {
    ValueId owner;
    int64_t offset;  // in bytes
  };
  View Of(ValueId id) const;
  // The input, constant or output of the graph whose memory an owner uses; kNoValue if the memory
  // belongs to the arena.
  ValueId OutsideOf(ValueId owner) const { return outside_[owner]; }

  // Places `part` in the memory of `whole`, `offset` bytes from its start. Returns false and
  // changes nothing if `part` is already a part of other memory, or if the caller provides its
  // memory. (If it is an output that fills all of `whole`, `whole` moves to the output's memory.)
  bool Place(ValueId part, ValueId whole, int64_t offset);

 private:
  std::vector<int64_t> bytes_;
  std::vector<View> views_;       // each value's place in another value; owners are in themselves
  std::vector<ValueId> outside_;  // see OutsideOf()
  std::vector<bool> is_output_;
};

// Makes the inputs and outputs of a node share memory if it only changes the shape of a tensor,
// takes contiguous parts of one, or appends tensors. Returns whether it does. Parts begin at
// multiples of `alignment`, because kernels need aligned buffers.
bool TakeAlias(const Graph& graph, const Node& node, int64_t alignment, Views& views);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PARTITION_VIEWS_H_
