#include "common/ir/annotation.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace hone::ir {
namespace {

using Key = Annotation::Key;

constexpr AnnotationInfo kInfos[] = {
    {Key::kThreads, "threads", true, false, 1, 1024},
    {Key::kOmpSchedule, "omp_schedule", true, false, 0, 1 << 20},
    {Key::kPrefetch, "prefetch", true, false, 0, 64},
    {Key::kNonTemporal, "nontemporal", false, true, 1, 1},
    {Key::kDoubleBuffer, "double_buffer", false, true, 1, 1},
    {Key::kSoftwarePipeline, "software_pipeline", true, false, 2, 8},
    {Key::kAsyncCopy, "async_copy", false, true, 1, 1},
    {Key::kIntrinsic, "intrinsic", true, false, 0, 1 << 20},
};

}  // namespace

const AnnotationInfo& InfoOf(Key key) { return kInfos[static_cast<int>(key)]; }

const AnnotationInfo* FindAnnotation(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kInfos), std::end(kInfos),
                                   [&](const AnnotationInfo& info) { return info.name == name; });
  return found == std::end(kInfos) ? nullptr : found;
}

int64_t ValueOf(const Annotations& annotations, Key key, int64_t fallback) {
  for (const Annotation& annotation : annotations) {
    if (annotation.key == key) return annotation.value;
  }
  return fallback;
}

void Set(Annotations& annotations, Key key, int64_t value) {
  auto at = std::find_if(annotations.begin(), annotations.end(),
                         [&](const Annotation& a) { return a.key >= key; });
  if (at != annotations.end() && at->key == key) {
    at->value = value;
  } else {
    annotations.insert(at, {key, value});
  }
}

std::string PrintAnnotations(const Annotations& annotations) {
  std::string text;
  for (const Annotation& annotation : annotations)
    absl::StrAppend(&text, " @", InfoOf(annotation.key).name, "=", annotation.value);
  return text;
}

}  // namespace hone::ir
