#ifndef HONE_COMMON_SCHEDULE_REWRITE_IMAGE_H_
#define HONE_COMMON_SCHEDULE_REWRITE_IMAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

// An image that a sum reads through a sliding window, for rewrites that copy it with its padding.
namespace hone::schedule {

// A FailedPrecondition of a rewrite.
absl::Status NotFor(absl::string_view rewrite, absl::string_view why);

// The axis of the output that a window index moves along, and by how many elements per step.
struct Slide {
  ir::AtomId axis = ir::kNoAtom;
  int64_t stride = 0;
};

// Returns the slide of stride·axis + tap. Its axis is kNoAtom if the index has another form.
Slide SlideOf(const ir::Stage& stage, const ir::Index& index);

// Returns the load of the image that a sum reads through a window. Its guards only keep the window
// inside of the image.
absl::StatusOr<ir::Expr> ImageOf(absl::string_view rewrite, const ir::Workload& workload,
                                 const ir::Stage& stage);

// Replaces a load, such as that of the image, in a value.
ir::ExprId WithLoadAt(ir::Workload& workload, ir::ExprId value, const ir::Expr& load,
                      ir::ExprId replacement);

// Renumbers the tensors. FailedPrecondition: the workload is not valid.
absl::StatusOr<ir::Workload> Checked(absl::string_view rewrite, ir::Workload workload);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITE_IMAGE_H_
