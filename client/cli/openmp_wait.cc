#include "client/cli/openmp_wait.h"

#include <cstdlib>

namespace hone::cli {

void LimitOpenMpWaiting() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", kOpenMpSpins, /*overwrite=*/0);
}

}  // namespace hone::cli
