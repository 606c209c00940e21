#ifndef HONE_SERVER_TUNER_SPACE_CHOOSER_H_
#define HONE_SERVER_TUNER_SPACE_CHOOSER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/schedule/replay.h"

namespace hone::space {

// Makes a decision vector, site by site. DesignSpace uses it for one vector at a time, in one
// thread.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Starts a vector.
  virtual void Begin(Rng& rng) { (void)rng; }
  // Writes legal values for site `index`. `attempt` counts the tries at this site; if the
  // constraints reject the first one, later ones must be of another kind.
  virtual void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
                      absl::Span<int64_t> values) = 0;
};

// Samples uniformly from the legal values.
class SampleChooser final : public Chooser {
 public:
  void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
              absl::Span<int64_t> values) override;
};

// Changes one site, picked among those with a choice. The others keep the parent's values,
// repaired.
class MutateChooser final : public Chooser {
 public:
  // `sites` are those of the parent.
  MutateChooser(absl::Span<const schedule::Site> sites, absl::Span<const int64_t> parent);
  // Whether no site has a choice.
  bool fixed() const { return movable_.empty(); }
  void Begin(Rng& rng) override;
  void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
              absl::Span<int64_t> values) override;

 private:
  absl::Span<const int64_t> parent_;
  std::vector<int> movable_;
  int target_ = -1;
};

// Takes every site from one of two parents, repaired.
class CrossoverChooser final : public Chooser {
 public:
  CrossoverChooser(absl::Span<const int64_t> a, absl::Span<const int64_t> b) : a_(a), b_(b) {}
  void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
              absl::Span<int64_t> values) override;

 private:
  absl::Span<const int64_t> a_, b_;
};

bool HasChoice(const schedule::Site& site);
// Replaces `values` by the nearest legal values. Tiles keep their inner factors as far as they fit;
// a choice that is no longer a row is drawn again.
void Repair(const schedule::Site& site, Rng& rng, absl::Span<int64_t> values);
// Moves to a neighbour. In a tile, a factor moves between two levels, or, where sizes need not
// divide, a size changes so that there is one tile more or fewer. In a choice, another row is
// taken, mostly one nearby in the list. REQUIRES: HasChoice and legal values.
void Move(const schedule::Site& site, Rng& rng, absl::Span<int64_t> values);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_CHOOSER_H_
