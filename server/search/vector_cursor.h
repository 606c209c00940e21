#ifndef HONE_SERVER_SEARCH_VECTOR_CURSOR_H_
#define HONE_SERVER_SEARCH_VECTOR_CURSOR_H_

#include <vector>

#include "absl/status/status.h"
#include "server/search/history.h"
#include "server/search/site_values.h"

namespace hone::search {

// A place in the lexicographic order of a design space's decision vectors, by the lists of
// site_values.h, the last site fastest.
class VectorCursor {
 public:
  // To the next vector that may be legal; at first to the first one. False: there is none.
  bool Advance(const space::DesignSpace& space, SiteValues& lists);
  // REQUIRES Advance has returned true.
  const std::vector<int64_t>& decisions() const { return decisions_; }

  // For saved states; `number` is the place of the space in the context. Errors of ReadPoint.
  void Save(int number, cost_model::ByteWriter& writer) const;
  absl::Status Restore(const SearchContext& context, int number, SiteValues& lists,
                       cost_model::ByteReader& reader);

 private:
  // The first vector with a prefix.
  void Enter(const space::DesignSpace& space, absl::Span<const int64_t> prefix, SiteValues& lists);

  bool begun_ = false, done_ = false;
  std::vector<int64_t> decisions_;
  // Of the decisions; fewer where a primitive refused before the last; none in a space with one
  // vector only.
  std::vector<schedule::Site> sites_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_VECTOR_CURSOR_H_
