#ifndef HONE_SERVER_TUNER_SPACE_TRANSFER_H_
#define HONE_SERVER_TUNER_SPACE_TRANSFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ir/workload.h"
#include "common/schedule/trace.h"
#include "server/tuner/space/chooser.h"

namespace hone::space {

// Minimum distance of contractions with different forms.
inline constexpr double kOtherForm = 100;

// Returns the distance between two workloads, used to choose which results to transfer. Workloads
// of one form have the same tensors, stages and axes. Their distance is the sum of |log2| of the
// ratios of the axes' extents, plus a quarter of the same for the inputs' dimensions (which reflect
// strides and padding), plus 4 if their names differ. For two contractions of different forms it is
// kOtherForm plus |log2| of the ratio of their operations. Otherwise it is infinite, and nothing is
// transferred.
double WorkloadDistance(const ir::Workload& a, const ir::Workload& b);

// Returns the structure of a trace as text: its primitives in order, their input and output
// registers, and how many decisions each of them draws. Numbers and tensor names are left out, so
// traces that the same rule makes for different workloads can have equal structures. If they have,
// their decision vectors have the same length, and their numbers have the same meaning.
std::string StructureOf(const schedule::Trace& trace);

// Counts the positions at which both traces have the same instruction, including numbers and names.
// Among several traces with the same structure, this finds the one that is most like another trace.
int EqualInstructions(const schedule::Trace& a, const schedule::Trace& b);

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

#endif  // HONE_SERVER_TUNER_SPACE_TRANSFER_H_
