#ifndef HONE_SERVER_SPACE_NEAREST_CHOOSER_H_
#define HONE_SERVER_SPACE_NEAREST_CHOOSER_H_

#include <cstdint>
#include <vector>

#include "server/space/chooser.h"

namespace hone::space {

// Carries decisions over to another extent: every site gets the legal values that are nearest to
// the wanted ones. The distance of two tiles is the sum of |log2| of the ratios of their parts; the
// first part, which takes what the others leave, counts a hundredth. The first attempt at a site
// takes the nearest values, each later one the next.
class NearestChooser final : public Chooser {
 public:
  // `wanted` outlives it; as many numbers as the space takes.
  explicit NearestChooser(absl::Span<const int64_t> wanted) : wanted_(wanted) {}
  // A vector that is begun again begins farther away.
  void Begin(Rng& rng) override;
  void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
              absl::Span<int64_t> values) override;

 private:
  const absl::Span<const int64_t> wanted_;
  int restarts_ = -1;
  int listed_ = -1;                         // the site that `rows_` are of
  std::vector<std::vector<int64_t>> rows_;  // its legal values, nearest first
};

// The legal values of a site, nearest to `wanted` first; at least one, at most a few thousand.
// Where sizes need not divide, those of even tiles and the wanted one are listed.
std::vector<std::vector<int64_t>> NearestValues(const schedule::Site& site,
                                                absl::Span<const int64_t> wanted);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_NEAREST_CHOOSER_H_
