#ifndef HONE_TESTS_SERVER_TUNER_SEARCH_SPACES_H_
#define HONE_TESTS_SERVER_TUNER_SEARCH_SPACES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/design_space.h"

namespace hone::search {

// Handwritten design spaces of one workload. The tests do not depend on the rules that generate
// design spaces.
class TestSpaces {
 public:
  // Adds the space that these instructions describe.
  void Add(std::string name, absl::string_view instructions);
  SearchContext Context(uint64_t seed) const;
  // The space of a candidate. Aborts if there is none.
  const space::DesignSpace& SpaceOf(const record::Candidate& candidate) const;
  const std::vector<std::unique_ptr<space::DesignSpace>>& spaces() const { return spaces_; }

  // Makes an empty set of spaces for a matmul of size³.
  explicit TestSpaces(int64_t size);
  // Makes an empty set of spaces for an operator.
  TestSpaces(absl::string_view op, const std::vector<std::string>& words);

 private:
  std::shared_ptr<const ir::Workload> workload_;
  std::vector<std::unique_ptr<space::DesignSpace>> spaces_;
};

// Four spaces: untiled; tiled with vectors; a register tile on packed panels; a register tile
// without packing.
TestSpaces MatmulSpaces(int64_t size = 512);
// A single space with `choices` candidates.
TestSpaces TinySpace(int choices);

}  // namespace hone::search

#endif  // HONE_TESTS_SERVER_TUNER_SEARCH_SPACES_H_
