#include "server/research/lab/enumerate.h"

#include "absl/strings/str_cat.h"
#include "server/tuner/search/vector_cursor.h"

namespace hone::lab {

absl::StatusOr<std::vector<Enumerated>> EnumerateCandidates(const space::DesignSpace& space,
                                                            size_t limit) {
  constexpr size_t kTriesPerCandidate = 100;
  std::vector<Enumerated> found;
  search::SiteValues lists;
  search::VectorCursor cursor;
  for (size_t tries = 0; cursor.Advance(space, lists); ++tries) {
    if (space.IsLegal(cursor.decisions())) {
      const absl::StatusOr<ir::Program> program = space.Replay(cursor.decisions());
      if (program.ok()) found.push_back({cursor.decisions(), program->StructuralDigest()});
    }
    if (found.size() > limit || tries > kTriesPerCandidate * limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("design space ", space.name(), " has more than ", limit,
                       " candidates (or too many vectors to try): restrict its samplings"));
    }
  }
  return found;
}

}  // namespace hone::lab
