// `hone-builder link`: output, messages and exit codes.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::builder {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

integration::Result Link(const integration::Words& words) {
  return integration::RunProgram(integration::With({"hone-builder", "link"}, words));
}

TEST(LinkCommandTest, WritesASharedObject) {
  const integration::Result linked = Link({"--visible", "caller_", CALLER_OBJECT, CALLEE_OBJECT});
  EXPECT_EQ(linked.code, 0) << linked.errors;
  EXPECT_THAT(linked.output, AllOf(StartsWith("\x7f"
                                              "ELF"),
                                   HasSubstr("caller_run")));
}

TEST(LinkCommandTest, TellsWhatTheLinkerRefuses) {
  const integration::Result undefined = Link({"--visible", "caller_", CALLER_OBJECT});
  EXPECT_EQ(undefined.code, 2);
  EXPECT_THAT(undefined.errors, AllOf(StartsWith("hone-builder: "), HasSubstr("callee_value")));
  EXPECT_THAT(undefined.output, IsEmpty());
  const integration::Result missing = Link({"--visible", "caller_", "/no/such/file"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("/no/such/file"));
  EXPECT_EQ(Link({CALLEE_OBJECT}).code, 2);  // without a prefix
  const integration::Result text = Link({"--visible", "caller_", "/proc/self/status"});
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.errors, HasSubstr("not an ELF object file"));
}

}  // namespace
}  // namespace hone::builder
