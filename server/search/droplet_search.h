#ifndef HONE_SERVER_SEARCH_DROPLET_SEARCH_H_
#define HONE_SERVER_SEARCH_DROPLET_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

struct DropletOptions {
  bool draft = false;     // whether the draft leads until the model has learnt
  double p_value = 0.05;  // that a faster candidate must not exceed to become the incumbent
  // A strategy is told one latency per candidate, no samples: its standard deviation, relative, and
  // how many samples stand behind it.
  double noise = 0.01;
  int samples = 3;
  int combined = 2;    // decisions that move at once, at most
  int most_steps = 8;  // of a speculative hop
};

// Coordinate descent (Canesche et al., CC 2024; AutoTVM's DropletTuner): measures the neighbours of
// the incumbent, which gives way to one that is faster with statistical significance; while there
// is room in a batch, also hops of two, three and more steps. Neighbours are the hops of
// site_values.h (neighbouring divisors), one decision first, then several at once, each group in
// the order of the ranking. Beyond the paper: it starts in every design space, at the best
// of the draft where there is one; when nothing around the incumbent is left, the best candidate
// with a neighbour left takes its place, and draws fill the rest.
std::unique_ptr<SearchStrategy> MakeDropletSearch(SearchContext context,
                                                  const DropletOptions& options = {});

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_DROPLET_SEARCH_H_
