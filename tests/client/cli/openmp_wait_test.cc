#include "client/cli/openmp_wait.h"

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

class OpenMpWaitTest : public ::testing::Test {
 protected:
  OpenMpWaitTest() { Clear(); }
  ~OpenMpWaitTest() override { Clear(); }
  static void Clear() {
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
  }
  static std::string SpinCount() {
    const char* const count = std::getenv("GOMP_SPINCOUNT");
    return count == nullptr ? "not set" : count;
  }
};

TEST_F(OpenMpWaitTest, IsLimitedByDefault) {
  LimitOpenMpWaiting();
  EXPECT_EQ(SpinCount(), kOpenMpSpins);
}

TEST_F(OpenMpWaitTest, TheUserDecides) {
  setenv("GOMP_SPINCOUNT", "infinity", 1);
  LimitOpenMpWaiting();
  EXPECT_EQ(SpinCount(), "infinity");
  Clear();
  setenv("OMP_WAIT_POLICY", "active", 1);
  LimitOpenMpWaiting();
  EXPECT_EQ(SpinCount(), "not set");
}

}  // namespace
}  // namespace hone::cli
