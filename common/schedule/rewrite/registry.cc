#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/schedule/rewrite/rewrite.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {
namespace {

constexpr Rewrite kRewrites[] = {
    {"bf16", "", Bf16, Bf16Tolerance, "rounds the factors of a sum of products in f32 to bf16"},
    {"im2col", "", Im2col, NoTolerance,
     "gathers a sliding window into a tensor, which leaves a matrix product"},
    {"join_taps", "multiple", JoinTaps, NoTolerance,
     "joins the taps of a line of a window with the channels, up to a multiple of terms"},
    {"online_softmax", "", OnlineSoftmax, NoTolerance, "a softmax's maximum and sum in one pass"},
    {"pad_image", "", PadImage, NoTolerance,
     "copies an image with its padding, so that a sliding window needs no conditions"},
    {"pixel_rows", "multiple, terms", PixelRows, NoTolerance,
     "copies an image with its padding; the pixels are rows of a matrix, up to a multiple (0: of "
     "each line on its own)"},
    {"regroup_axes", "", RegroupAxes, NoTolerance,
     "divides axes that are read in groups, and joins neighbouring axes that are read together"},
    {"split_k", "parts", SplitK, NoTolerance,
     "divides a reduction into parts that are computed separately"},
    {"winograd", "m", Winograd, WinogradTolerance,
     "3x3 convolution with stride 1 in tiles of m x m outputs (m = 2, 4, 6)"},
};

struct Found {
  const Rewrite* rewrite;
  int stage;
};

absl::StatusOr<Found> Find(const ir::Workload& workload, absl::string_view name,
                           absl::string_view stage, absl::Span<const int64_t> numbers) {
  const Rewrite* rewrite = FindRewrite(name);
  if (rewrite == nullptr) {
    std::string known;
    for (const Rewrite& r : Rewrites()) absl::StrAppend(&known, known.empty() ? "" : ", ", r.name);
    return absl::InvalidArgumentError(
        absl::StrCat("unknown rewrite '", name.substr(0, 64), "'; known: ", known));
  }
  const size_t takes =
      rewrite->parameters.empty() ? 0 : absl::c_count(rewrite->parameters, ',') + 1;
  if (numbers.size() != takes) {
    const std::string named = takes == 0 ? "" : absl::StrCat(" (", rewrite->parameters, ")");
    return absl::InvalidArgumentError(absl::StrCat(name, " takes ",
                                                   Counted(static_cast<int64_t>(takes), "number"),
                                                   named, ", not ", numbers.size()));
  }
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    for (ir::BufferId tensor : workload.stages[s].tensors) {
      if (workload.tensors[tensor].name == stage) return Found{rewrite, static_cast<int>(s)};
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no stage computes a tensor called '", stage.substr(0, 64), "'"));
}

// Whether both have the same inputs and outputs, in order. Their dimensions may differ, because the
// elements of an argument are stored without gaps.
bool SameInterface(const ir::Workload& a, const ir::Workload& b) {
  const auto same = [&](const std::vector<ir::BufferId>& x, const std::vector<ir::BufferId>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](ir::BufferId i, ir::BufferId j) {
      const ir::Tensor &s = a.tensors[i], &t = b.tensors[j];
      return s.name == t.name && s.dtype == t.dtype && s.constant == t.constant &&
             ir::ElementsOf(s.shape) == ir::ElementsOf(t.shape);
    });
  };
  return same(a.Inputs(), b.Inputs()) && same(a.Outputs(), b.Outputs());
}

}  // namespace

absl::Span<const Rewrite> Rewrites() { return kRewrites; }

const Rewrite* FindRewrite(absl::string_view name) {
  const auto* found = absl::c_find_if(kRewrites, [&](const Rewrite& r) { return r.name == name; });
  return found == std::end(kRewrites) ? nullptr : found;
}

absl::StatusOr<ir::Workload> ApplyRewriteTo(const ir::Workload& workload, absl::string_view name,
                                            absl::string_view stage,
                                            absl::Span<const int64_t> numbers) {
  HONE_ASSIGN_OR_RETURN(const Found found, Find(workload, name, stage, numbers));
  HONE_ASSIGN_OR_RETURN(ir::Workload rewritten,
                        found.rewrite->apply(workload, found.stage, numbers));
  if (const absl::Status valid = rewritten.Validate(); !valid.ok()) {
    return absl::InternalError(
        absl::StrCat("rewrite ", name, " gives an invalid workload: ", valid.message()));
  }
  if (!SameInterface(workload, rewritten))
    return absl::InternalError(absl::StrCat("rewrite ", name, " changes the inputs or outputs"));
  return rewritten;
}

absl::StatusOr<double> RewriteTolerance(const ir::Workload& workload, absl::string_view name,
                                        absl::string_view stage,
                                        absl::Span<const int64_t> numbers) {
  HONE_ASSIGN_OR_RETURN(const Found found, Find(workload, name, stage, numbers));
  HONE_RETURN_IF_ERROR(found.rewrite->apply(workload, found.stage, numbers).status());
  return found.rewrite->tolerance(workload, found.stage, numbers);
}

}  // namespace hone::schedule
