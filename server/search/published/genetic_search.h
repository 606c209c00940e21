#ifndef HONE_SERVER_SEARCH_PUBLISHED_GENETIC_SEARCH_H_
#define HONE_SERVER_SEARCH_PUBLISHED_GENETIC_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

// Those of AutoTVM's GATuner.
struct GeneticOptions {
  int population = 100;   // of a generation; every member is measured
  int elites = 3;         // best ones that stay parents
  double mutation = 0.1;  // probability that a child's site is drawn anew
};

// AutoTVM's genetic tuner (Chen et al., NeurIPS 2018). Genes are the sites of a decision vector;
// parents are drawn in proportion to their measured throughput, a child takes the sites before a
// random place from one and the rest from the other. Children that are known mutate until they are
// new. Looks at no model and no draft. Beyond the paper: the first generation covers all design
// spaces, and both parents are of one space.
std::unique_ptr<SearchStrategy> MakeGeneticSearch(SearchContext context,
                                                  const GeneticOptions& options = {});

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_PUBLISHED_GENETIC_SEARCH_H_
