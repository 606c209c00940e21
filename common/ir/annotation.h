#ifndef HONE_COMMON_IR_ANNOTATION_H_
#define HONE_COMMON_IR_ANNOTATION_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace hone::ir {

// What a schedule asks of a loop or block beside its kind. What the program computes never depends
// on it. The numbers of the keys are part of program digests: they are not reused.
struct Annotation {
  enum class Key : uint8_t {
    kThreads = 0,  // of a parallel loop: on how many threads it runs; 1: it does not fork
    kOmpSchedule =
        1,  // of a parallel loop: 0 equal shares, n > 0 threads fetch n iterations at a time
    kPrefetch =
        2,  // of a serial loop: what its blocks load is prefetched that many iterations ahead
    kNonTemporal = 3,       // of a block: its stores pass the caches by
    kDoubleBuffer = 4,      // of a block: what it writes has two places, used in turn
    kSoftwarePipeline = 5,  // of a loop: that many of its iterations overlap
    kAsyncCopy = 6,         // of a block: its copies run beside the computation
    kIntrinsic = 7,  // of a tensor loop: the instruction that computes the nest (intrinsic.h)
  };
  Key key = Key::kThreads;
  int64_t value = 0;
  friend bool operator==(const Annotation&, const Annotation&) = default;
};

// Sorted by key, each once.
using Annotations = absl::InlinedVector<Annotation, 1>;

struct AnnotationInfo {
  Annotation::Key key;
  absl::string_view name;  // in text
  bool on_loop;
  bool on_block;
  int64_t min, max;  // of the value
};
// By number of the key.
const AnnotationInfo& InfoOf(Annotation::Key key);
// nullptr when there is none of that name.
const AnnotationInfo* FindAnnotation(absl::string_view name);
// The value of a key; `fallback` when it is not there.
int64_t ValueOf(const Annotations& annotations, Annotation::Key key, int64_t fallback);
void Set(Annotations& annotations, Annotation::Key key, int64_t value);
// " @threads=2 @omp_schedule=4"; empty when there is none.
std::string PrintAnnotations(const Annotations& annotations);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ANNOTATION_H_
