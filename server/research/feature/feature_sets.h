#ifndef HONE_SERVER_RESEARCH_FEATURE_FEATURE_SETS_H_
#define HONE_SERVER_RESEARCH_FEATURE_FEATURE_SETS_H_

#include <memory>
#include <string>

#include "server/tuner/feature/feature_set.h"

// Feature sets of the literature, which are defined in the *_features.cc files.
namespace hone::feature {

// The maximum number of decisions in a row. AutoTVM's largest templates have half as many.
inline constexpr int kKnobDecisions = 64;

// "knob": AutoTVM's configuration features, one row per program: the decisions in the order of the
// design space (tile factors and other chosen values). Decisions are comparable only within a
// design space, so the space is also a column, and a model that splits by it learns each space
// separately. A program does not contain its decisions, so Extract returns FailedPrecondition; use
// ExtractCandidate. InvalidArgument: more than kKnobDecisions decisions.
std::unique_ptr<FeatureSet> MakeKnobFeatures();

// How much of a schedule is described. TLP's code takes 25 primitives of 11 arguments on CPUs, and
// 40 of 9 on GPUs, and fills shorter sequences with rows of zeros. Ours have 19 rows in the median;
// 48 rows of 16 arguments hold 93 % of the schedules whole, 25 of 11 only 55 %
// (tests/bench/results/models.md).
struct PrimitiveOptions {
  int sequence = 48;   // primitives; further ones are left out. At least 1
  int arguments = 16;  // of a primitive; further ones are left out
  bool pad = false;    // rows of zeros follow up to `sequence` rows
  // Drawn numbers have a row where they are drawn, too, so that the rows of a partial schedule tell
  // all of its decisions, but for those whose primitives are left out after `sequence` rows. A
  // partial schedule has fewer decisions than its trace, and its rows end before the next draw.
  bool draws = false;
};

// TLP's features (Zhai et al., ASPLOS 2023): the schedule as a sequence, one row per primitive. The
// columns are the primitive's type, one-hot over the registry, and its arguments as numbers:
// blocks and loops by their number, names of the workload by their first appearance in the
// schedule, other words as tokens, and numbers as SignedLog2 (TLP takes them as they are). A drawn
// number stands where it is used; its sampling has no row, unless `draws` is set. ExtractSchedule
// needs no program. FailedPrecondition: the candidate has no schedule. InvalidArgument: another
// number of decisions than the schedule's, or with `draws` a larger one.
std::unique_ptr<FeatureSet> MakePrimitiveFeatures(std::string name,
                                                  const PrimitiveOptions& options);

// "itervar": AutoTVM's features of every loop (Chen et al., NeurIPS 2018), one row per program: the
// columns of loop_features.cc for each loop, in order of first appearance. At most 32 loops are
// described. Columns of absent loops and accesses are 0.
//
// The public code sorts accesses by the names of buffers, and pads rows to the longest program of a
// batch. Here, accesses are in order of execution, because names have no meaning, and all rows have
// the same length. `mod` is -1 for every access, as in the public code, which never computes it.
std::unique_ptr<FeatureSet> MakeItervarFeatures();

// The column with the number of the parent loop's row in the candidate; -1: no parent.
inline constexpr int kTreeParentColumn = 0;

// "tree": the loop tree, one row per loop (at most 256), for models that process a program's
// structure (AutoTVM's TreeGRU). The first column is the number of the parent's row in the
// candidate; the others are the loop's features (loop_features.cc). A parent's row precedes its
// children's rows. A program without loops has one row, with the parent -1 and zeros.
std::unique_ptr<FeatureSet> MakeTreeFeatures();

// Options of the relation features: those of Chen et al. (NeurIPS 2018) as the public code computes
// them, with the variations of Zheng's study.
struct CurveOptions {
  enum Relation : unsigned {
    kCountToReuse = 1,
    kReuseToCount = 2,
    kCountToTopdown = 4,
    kTopdownToCount = 8,
    kAll = 15,
  };
  int samples = 20;           // points of every curve, at least 1
  unsigned relations = kAll;  // a sum of Relation, not 0
};

// The maximum number of buffers in a row.
inline constexpr int kCurveBuffers = 6;

// Relation features, one row per program. Their number does not depend on the number of loops. For
// each buffer that the deepest statements touch (using its last access), every enclosing loop has
// three numbers, as log2: count and reuse (touch.h), and topdown, the product of the extents from
// the outermost loop to this one. A relation x → y is sampled at t = 0, 1, …, samples - 1: the
// values are the y of the largest x ≤ t, and t - x. As in the public code, the x and the y are
// sorted separately, so a pair can combine different loops. Buffers are in order of execution,
// because names have no meaning. Columns of absent buffers are 0.
std::unique_ptr<FeatureSet> MakeCurveFeatures(std::string name, const CurveOptions& options);

}  // namespace hone::feature

#endif  // HONE_SERVER_RESEARCH_FEATURE_FEATURE_SETS_H_
