#ifndef HONE_SERVER_TUNER_SEARCH_POINT_H_
#define HONE_SERVER_TUNER_SEARCH_POINT_H_

#include <cstdint>
#include <vector>

#include "common/base/digest.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/design_space.h"

namespace hone::search {

// A candidate inside one search.
struct Point {
  int space = 0;  // index in SearchContext::spaces
  std::vector<int64_t> decisions;
  friend bool operator==(const Point&, const Point&) = default;
};

// The digest of a candidate. It is the same on every machine and for every order of the spaces.
inline Digest KeyOf(const SearchContext& context, const Point& point) {
  DigestBuilder builder;
  builder.Add(absl::string_view(context.spaces[point.space]->digest()));
  for (int64_t decision : point.decisions) builder.Add(decision);
  return builder.Finish();
}

inline record::Candidate CandidateOf(const SearchContext& context, const Point& point) {
  return {context.spaces[point.space]->digest(), point.decisions};
}

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_POINT_H_
