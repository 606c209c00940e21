#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "client/connection/program_call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"
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
  EXPECT_THAT(CodeBy("echo 'its last words' >&2; kill -SEGV $$"),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("signal 11"), HasSubstr("its last words"))));
}

TEST_F(KernelCodeTest, ThinInstallationsHaveNoBuilder) {
  EXPECT_THAT(KernelCode("a trace", "target words", folder_.path()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(folder_ / "hone-builder is missing")));
}

}  // namespace
}  // namespace hone::client
