#ifndef HONE_SERVER_TUNER_SPACE_NEAREST_CHOOSER_H_
#define HONE_SERVER_TUNER_SPACE_NEAREST_CHOOSER_H_

#include <cstdint>
#include <vector>

#include "server/tuner/space/chooser.h"

namespace hone::space {

// Transfers decisions to another extent: every site gets the legal values that are nearest to the
// wanted ones. The distance of two tiles is the sum of |log2| of the ratios of their parts; the
// first part, which follows from the others, has a weight of 1/100. The first attempt at a site
// takes the nearest values, each later attempt the next nearest.
class NearestChooser final : public Chooser {
 public:
  // `wanted` must outlive this object and has as many numbers as the space has decisions.
  explicit NearestChooser(absl::Span<const int64_t> wanted) : wanted_(wanted) {}
  // Each restart begins farther away.
  void Begin(Rng& rng) override;
  void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
              absl::Span<int64_t> values) override;

 private:
  const absl::Span<const int64_t> wanted_;
  int restarts_ = -1;
  int listed_ = -1;                         // the site of `rows_`
  std::vector<std::vector<int64_t>> rows_;  // its legal values, nearest first
};

// Returns the legal values of a site, nearest to `wanted` first; at least one, at most a few
// thousand. Where sizes need not divide, lists those that give even tiles and the wanted one.
std::vector<std::vector<int64_t>> NearestValues(const schedule::Site& site,
                                                absl::Span<const int64_t> wanted);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_NEAREST_CHOOSER_H_
