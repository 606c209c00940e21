#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "client/connection/program_call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/temporary_folder.h"

namespace hone::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KernelCodeTest : public ::testing::Test {
 protected:
  // Runs a shell script in place of hone-builder.
  absl::StatusOr<std::string> CodeBy(const std::string& script,
                                     const std::string& trace = "a trace") {
    const std::string path = folder_ / "hone-builder";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    chmod(path.c_str(), 0700);
    return KernelCode(trace, "target words", folder_.path());
  }

  const TemporaryFolder folder_;
};

TEST_F(KernelCodeTest, PassesTheTraceAndReturnsTheOutput) {
  EXPECT_EQ(CodeBy("printf '%s|' \"$@\"; cat").value(), "code|--target|target words|-|a trace");
  // More than pipes hold.
  const std::string large(4 << 20, 'x');
  EXPECT_EQ(CodeBy("cat; echo words >&2", large).value(), large);
}

TEST_F(KernelCodeTest, ErrorsAreThoseOfTheBuilder) {
  const absl::Status wrong = CodeBy("echo 'hone-builder: no such loop' >&2; exit 2").status();
  EXPECT_EQ(wrong, absl::InvalidArgumentError("no such loop"));
  const absl::Status failed = CodeBy("echo 'hone-builder: a defect' >&2; exit 1").status();
  EXPECT_EQ(failed, absl::AbortedError("a defect"));
  const absl::Status crashed = CodeBy("echo 'its last words' >&2; kill -SEGV $$").status();
  EXPECT_TRUE(absl::IsAborted(crashed)) << crashed;
  EXPECT_THAT(std::string(crashed.message()),
              AllOf(HasSubstr("signal 11"), HasSubstr("its last words")));
}

TEST_F(KernelCodeTest, ThinInstallationsHaveNoBuilder) {
  const absl::Status missing = KernelCode("a trace", "target words", folder_.path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(folder_ / "hone-builder is missing"));
}

}  // namespace
}  // namespace hone::client
