// The bundle of deploy/bundle-worker.sh for ARMv7 starts under QEMU's user-mode emulation and
// detects its CPU. Skipped without the bundle, which tests/run.sh makes.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kEmulator[] = "/usr/bin/qemu-arm";

TEST(Armv7BundleTest, ItsProgramsStart) {
  const char* const given = std::getenv("HONE_BUNDLE_ARMV7");
  const std::string bundle = given == nullptr ? "" : given;
  if (!std::filesystem::exists(bundle)) {
    GTEST_SKIP() << "there is no bundle: run deploy/bundle-worker.sh --arch armv7 -o " << bundle;
  }
  if (access(kEmulator, X_OK) != 0) GTEST_SKIP() << kEmulator << " is missing";
  const Result worker = RunProgram({kEmulator, bundle + "/hone-worker", "--version"});
  EXPECT_EQ(worker.code, 0) << worker.errors;
  EXPECT_THAT(worker.output, StartsWith("hone-worker "));
  const Result runner = RunProgram({kEmulator, bundle + "/libc/ld.so", "--library-path",
                                    bundle + "/libc", bundle + "/hone-runner", "--list-devices"});
  EXPECT_EQ(runner.code, 0) << runner.errors;
  EXPECT_THAT(runner.output, HasSubstr("target arch=armv7 "));
}

}  // namespace
}  // namespace hone::integration
