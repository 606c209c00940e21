#ifndef HONE_SERVER_SEARCH_BAYESIAN_SEARCH_H_
#define HONE_SERVER_SEARCH_BAYESIAN_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

struct BayesianOptions {
  int fitted = 128;        // results of a design space, at most, that its process holds
  int pool = 128;          // candidates of a design space among which a batch is picked
  int widest = 8;          // of a trust region, in moves from a good candidate
  int first_width = 4;     // of a trust region at first and after a restart
  int successes = 3;       // batches with a better result in a row after which a region doubles
  int failures = 3;        // batches without one after which it halves
  double deviation = 0.4;  // of log latency from the draft, before there are results
};

// Bayesian optimization on measured latencies. Log latency is the ranking's estimate (draft and
// model, as it was before the measurement; its slope is fitted, so that a poor estimate fades) plus
// a Gaussian process per design space over log2 of tile factors (Matérn 5/2) times choices
// (Hamming); the kernel's parameters maximize the likelihood over all spaces. The pool holds draws
// and moves inside a trust region around the best of each space (Eriksson et al., NeurIPS 2019). A
// batch is its best by the posterior mean and then one Thompson draw of the joint posterior per
// candidate, each accepted with the probability that a candidate there does not fail.
std::unique_ptr<SearchStrategy> MakeBayesianSearch(SearchContext context,
                                                   const BayesianOptions& options = {});

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_BAYESIAN_SEARCH_H_
