#include "client/network/graph/pass/min_cut.h"

#include <algorithm>

namespace hone::graph {

int MinCut::AddNode() {
  edges_of_.emplace_back();
  return static_cast<int>(edges_of_.size()) - 3;
}

void MinCut::AddCosts(int node, int64_t first, int64_t second) {
  if (first > 0) AddEdge(node + 2, kSecond, first);
  if (second > 0) AddEdge(kFirst, node + 2, second);
}

void MinCut::AddCost(int first, int second, int64_t cost) {
  if (cost > 0) AddEdge(first + 2, second + 2, cost);
}

void MinCut::AddEdge(int from, int to, int64_t capacity) {
  edges_of_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::FindLevels() {
  levels_.assign(edges_of_.size(), -1);
  levels_[kFirst] = 0;
  std::vector<int> queue = {kFirst};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int e : edges_of_[queue[i]]) {
      const Edge& edge = edges_[e];
      if (edge.capacity == 0 || levels_[edge.to] >= 0) continue;
      levels_[edge.to] = levels_[queue[i]] + 1;
      queue.push_back(edge.to);
    }
  }
  return levels_[kSecond] >= 0;
}

int64_t MinCut::Push(int node, int64_t limit) {
  if (node == kSecond) return limit;
  for (size_t& i = next_[node]; i < edges_of_[node].size(); ++i) {
    const int e = edges_of_[node][i];
    if (edges_[e].capacity == 0 || levels_[edges_[e].to] != levels_[node] + 1) continue;
    const int64_t pushed = Push(edges_[e].to, std::min(limit, edges_[e].capacity));
    if (pushed == 0) continue;
    edges_[e].capacity -= pushed;
    edges_[e ^ 1].capacity += pushed;
    return pushed;
  }
  return 0;
}

std::vector<bool> MinCut::Solve() {
  while (FindLevels()) {
    next_.assign(edges_of_.size(), 0);
    while (Push(kFirst, kNever) > 0) {
    }
  }
  // Nodes that can still reach the second terminal are on its side.
  std::vector<bool> second(edges_of_.size());
  std::vector<int> queue = {kSecond};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int e : edges_of_[queue[i]]) {
      const int node = edges_[e].to;
      if (edges_[e ^ 1].capacity == 0 || second[node]) continue;
      second[node] = true;
      queue.push_back(node);
    }
  }
  second.erase(second.begin(), second.begin() + 2);
  return second;
}

}  // namespace hone::graph
