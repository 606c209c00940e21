// `hone primitives`: the output for people and for scripts. No server is started.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using integration::Result;

Result Hone(std::vector<std::string> words) {
  words.insert(words.begin(), {"hone", "primitives"});
  return integration::RunProgram(words, {{"XDG_DATA_HOME", "/proc/nowhere"}}, absl::Seconds(60));
}

TEST(PrimitivesTest, ListsAll) {
  const Result result = Hone({});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("\nblock = cache_read(block, \"buffer\", \"scope\")\n"),
                    HasSubstr("\nloop, … = split(loop, factor, …)\n"),
                    HasSubstr("\nnumber, … = sample_tile(loop, parts=n, [max_inner=n])\n")));
}

TEST(PrimitivesTest, ExplainsOne) {
  const Result result = Hone({"rfactor"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("block = rfactor(block, loop, [dimension])\n"),
                    HasSubstr("\n  dimension  a number, optional  position of the new dimension"),
                    Not(HasSubstr("cache_read"))));
}

TEST(PrimitivesTest, JsonHasTheArguments) {
  const Result result = Hone({"split", "--json"});
  EXPECT_EQ(result.code, 0) << result.errors;
  const nlohmann::json json = nlohmann::json::parse(result.output, nullptr, false);
  const nlohmann::json& split = json["primitives"][0];
  EXPECT_EQ(split["usage"], "loop, … = split(loop, factor, …)");
  EXPECT_EQ(split["arguments"][1]["name"], "factor");
  EXPECT_EQ(split["arguments"][1]["repeats"], true);
}

TEST(PrimitivesTest, AnUnknownNameIsAUsageError) {
  const Result result = Hone({"spilt"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.errors, HasSubstr("unknown primitive 'spilt'; did you mean 'split'?"));
}

}  // namespace
}  // namespace hone::cli
