#ifndef HONE_COMMON_IR_ANNOTATION_H_
#define HONE_COMMON_IR_ANNOTATION_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace hone::ir {

// A hint of the schedule for a loop or block. Hints never change what the program computes. Program
// digests contain the keys' numbers, so a number is never reused.
struct Annotation {
  enum class Key : uint8_t {
    kThreads = 0,  // parallel loop: number of threads; 1 means no fork
    kOmpSchedule =
        1,  // parallel loop: 0 for equal shares; n > 0: threads fetch n iterations at a time
    kPrefetch = 2,      // serial loop: prefetch the loads of its blocks this many iterations ahead
    kNonTemporal = 3,   // block: its stores bypass the caches
    kDoubleBuffer = 4,  // block: its output alternates between two buffers
    kSoftwarePipeline = 5,  // loop: this many of its iterations overlap
    kAsyncCopy = 6,         // block: its copies run concurrently with the computation
    kIntrinsic = 7,         // tensor loop: the instruction that computes the nest (intrinsic.h)
  };
  Key key = Key::kThreads;
  int64_t value = 0;
  friend bool operator==(const Annotation&, const Annotation&) = default;
};

// Sorted by key, without duplicates.
using Annotations = absl::InlinedVector<Annotation, 1>;

struct AnnotationInfo {
  Annotation::Key key;
  absl::string_view name;  // in the text form
  bool on_loop;
  bool on_block;
  int64_t min, max;  // of the value
};
// Indexed by the key's number.
const AnnotationInfo& InfoOf(Annotation::Key key);
// nullptr if there is no annotation of that name.
const AnnotationInfo* FindAnnotation(absl::string_view name);
// The value of a key, or `fallback` if it is absent.
int64_t ValueOf(const Annotations& annotations, Annotation::Key key, int64_t fallback);
void Set(Annotations& annotations, Annotation::Key key, int64_t value);
// " @threads=2 @omp_schedule=4"; empty if there are no annotations.
std::string PrintAnnotations(const Annotations& annotations);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ANNOTATION_H_
