#include "common/target/cuda/function.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/error.h"

namespace hone::cuda {
namespace {

// A launch gets more shared memory than this only on request.
constexpr int64_t kCommonSharedBytes = 48 << 10;

}  // namespace

int AttributeOr(const Api& api, Function function, FunctionAttribute attribute, int otherwise) {
  int value = 0;
  return api.FuncGetAttribute(&value, attribute, function) == 0 ? value : otherwise;
}

absl::StatusOr<unsigned> ReserveShared(const Api& api, Function function, int64_t shared_bytes) {
  const int64_t declared = AttributeOr(api, function, kFunctionSharedBytes, 0);
  const int64_t dynamic = std::max<int64_t>(shared_bytes - declared, 0);
  if (declared + dynamic > kCommonSharedBytes) {
    HONE_RETURN_IF_ERROR(ToStatus(
        api.FuncSetAttribute(function, kFunctionMaxDynamicSharedBytes, static_cast<int>(dynamic)),
        absl::StrCat("reserve ", declared + dynamic, " bytes of shared memory")));
  }
  return static_cast<unsigned>(dynamic);
}

}  // namespace hone::cuda
