#ifndef HONE_SERVER_SPACE_CHOOSER_H_
#define HONE_SERVER_SPACE_CHOOSER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/schedule/replay.h"

namespace hone::space {

// How a decision vector comes about, site by site. Used by DesignSpace for one drawing at a time,
// by one thread.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Begins a vector.
  virtual void Begin(Rng& rng) { (void)rng; }
  // Writes legal values for site number `index`. `attempt` counts the tries at this site; later
  // ones must differ in kind from a first that the constraints rejected.
  virtual void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
                      absl::Span<int64_t> values) = 0;
};

// Uniform over the legal values.
class SampleChooser final : public Chooser {
 public:
  void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
              absl::Span<int64_t> values) override;
};

// One site, picked among those with a choice, moves; the others keep the parent's values, repaired.
class MutateChooser final : public Chooser {
 public:
  // `sites`: those of the parent.
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

// Every site from one of two parents, repaired.
class CrossoverChooser final : public Chooser {
 public:
  CrossoverChooser(absl::Span<const int64_t> a, absl::Span<const int64_t> b) : a_(a), b_(b) {}
  void Choose(const schedule::Site& site, int index, int attempt, Rng& rng,
              absl::Span<int64_t> values) override;

 private:
  absl::Span<const int64_t> a_, b_;
};

// Whether a site has more than one legal value.
bool HasChoice(const schedule::Site& site);
// The legal values nearest to `values`: tiles keep their inner factors as far as they fit; a choice
// that is no row any more is drawn again.
void Repair(const schedule::Site& site, Rng& rng, absl::Span<int64_t> values);
// A neighbour: of a tile, a factor moved between two levels (or, where sizes need not divide, a
// size that gives one tile more or fewer); of a choice, another row, mostly one that is near in the
// list. REQUIRES HasChoice and legal values.
void Move(const schedule::Site& site, Rng& rng, absl::Span<int64_t> values);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_CHOOSER_H_
