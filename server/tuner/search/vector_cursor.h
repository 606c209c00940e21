#ifndef HONE_SERVER_TUNER_SEARCH_VECTOR_CURSOR_H_
#define HONE_SERVER_TUNER_SEARCH_VECTOR_CURSOR_H_

#include <vector>

#include "absl/status/status.h"
#include "server/tuner/search/history.h"
#include "server/tuner/search/site_values.h"

namespace hone::search {

// A position in the enumeration of a design space's decision vectors. The vectors are in
// lexicographic order of the lists of site_values.h; the last site varies fastest.
class VectorCursor {
 public:
  // Moves to the next vector that may be legal; the first call moves to the first vector. Returns
  // false if there is none.
  bool Advance(const space::DesignSpace& space, SiteValues& lists);
  // REQUIRES: the last Advance returned true.
  const std::vector<int64_t>& decisions() const { return decisions_; }

 private:
  // Moves to the first vector that begins with `prefix`.
  void Enter(const space::DesignSpace& space, absl::Span<const int64_t> prefix, SiteValues& lists);

  bool begun_ = false, done_ = false;
  std::vector<int64_t> decisions_;
  // The sites of the decisions. Sites are missing at the end if a primitive rejected the vector
  // before them. Empty if the space has only one vector.
  std::vector<schedule::Site> sites_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_VECTOR_CURSOR_H_
