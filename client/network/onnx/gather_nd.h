#ifndef HONE_CLIENT_NETWORK_ONNX_GATHER_ND_H_
#define HONE_CLIENT_NETWORK_ONNX_GATHER_ND_H_

#include "absl/status/status.h"
#include "client/network/onnx/rewrite.h"

namespace hone::onnx {

// Rewrites GatherND, which looks up several dimensions at once, to Gather: joins the dimensions to
// one, and computes the index into it from the indices of the dimensions.
absl::Status GatherND(Rewrite& rewrite);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_GATHER_ND_H_
