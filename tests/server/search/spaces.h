#ifndef HONE_TESTS_SERVER_SEARCH_SPACES_H_
#define HONE_TESTS_SERVER_SEARCH_SPACES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/search/search_strategy.h"
#include "server/space/design_space.h"

namespace hone::search {

// Design spaces of one workload, written by hand so that tests do not change with the rules.
class TestSpaces {
 public:
  // Adds the space of some instructions.
  void Add(std::string name, absl::string_view instructions);
  SearchContext Context(uint64_t seed) const;
  // The place of a candidate's space; fails the process when there is none.
  const space::DesignSpace& SpaceOf(const record::Candidate& candidate) const;
  const std::vector<std::unique_ptr<space::DesignSpace>>& spaces() const { return spaces_; }

  // Of a square matmul.
  explicit TestSpaces(int64_t size);
  // Of an operator.
  TestSpaces(absl::string_view op, const std::vector<std::string>& words);

 private:
  std::shared_ptr<const ir::Workload> workload_;
  std::vector<std::unique_ptr<space::DesignSpace>> spaces_;
};

// Untiled; tiled with vectors; a register tile on packed panels; a register tile without packing.
TestSpaces MatmulSpaces(int64_t size = 512);
// Softmax by rows: the sizes of its three reductions' parts and of its results' are decided apart.
TestSpaces SoftmaxSpace(int64_t size = 512);
// One space with `choices` candidates.
TestSpaces TinySpace(int choices);

}  // namespace hone::search

#endif  // HONE_TESTS_SERVER_SEARCH_SPACES_H_
