#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_MIN_CUT_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_MIN_CUT_H_

#include <cstdint>
#include <vector>

namespace hone::graph {

// Divides nodes between two sides so that the sum of costs is minimal. The result is exact: it is
// the minimum cut between two terminals, found by Dinic's algorithm.
class MinCut {
 public:
  // More than any sum of costs.
  static constexpr int64_t kNever = int64_t{1} << 60;

  MinCut() : edges_of_(2) {}

  int AddNode();
  // The costs of a node being on the first or the second side.
  void AddCosts(int node, int64_t first, int64_t second);
  // The cost of `first` being on the first side while `second` is on the second.
  void AddCost(int first, int second, int64_t cost);
  // Returns whether each node is on the second side. Where both sides cost the same, it is on the
  // first. Call it once.
  std::vector<bool> Solve();

 private:
  struct Edge {
    int to;
    int64_t capacity;
  };
  static constexpr int kFirst = 0, kSecond = 1;  // the terminals

  void AddEdge(int from, int to, int64_t capacity);
  // Numbers the nodes by their distance from the first terminal. Returns whether the second one is
  // reached.
  bool FindLevels();
  int64_t Push(int node, int64_t limit);

  std::vector<Edge> edges_;  // each followed by its reverse
  std::vector<std::vector<int>> edges_of_;
  std::vector<int> levels_;
  std::vector<size_t> next_;  // the first edge of each node that may have capacity left
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_MIN_CUT_H_
