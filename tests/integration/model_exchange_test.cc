// What one server has learned, carried to a fresh one with the real programs.

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "tests/integration/hone_home.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;

// The draft that a job began with, from the store of a private server, whose end is awaited.
int64_t DraftOfJob(const HoneHome& home, const std::string& job) {
  const absl::Time limit = absl::Now() + absl::Minutes(2);
  while (home.Keeper() != 0 && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(50));
  const auto store = store::OpenSqliteStore(home.store());
  EXPECT_THAT(store, IsOk());
  if (!store.ok()) return -1;
  const auto row = (*store)->GetJob(job);
  EXPECT_THAT(row, IsOk());
  return row.ok() ? job::DecodeSpec(row->request)->draft_model : -1;
}

TEST(ModelExchange, AFreshServerBeginsWithAnImportedDraft) {
  TemporaryFolder folder;
  const std::string file = folder / "learned.honemodel";
  {
    HoneHome home;
    EXPECT_EQ(home.Hone({"models", "export", "-o", file}).code, 3) << "nothing was learned yet";
    for (const char* m : {"m=48", "m=64"}) {
      const Result tuned =
          home.Hone({"tune", "matmul", m, "n=64", "k=32", "--trials", "24", "--json"});
      ASSERT_EQ(tuned.code, 0) << tuned.errors;
    }
    Result trained;
    EXPECT_TRUE(Eventually([&] {  // the server may be learning by itself
      trained = home.Hone({"models", "train", "--model", "residual"});
      return !absl::StrContains(trained.errors, "is in progress");
    }));
    ASSERT_EQ(trained.code, 0) << trained.errors;
    const Result exported = home.Hone({"models", "export", "-o", file});
    ASSERT_EQ(exported.code, 0) << exported.errors;
    EXPECT_THAT(exported.output, HasSubstr("residual"));
  }
  const std::string bytes = ReadFile(file).value();
  const std::string half = folder / "half.honemodel";
  std::ofstream(half, std::ios::binary) << bytes.substr(0, bytes.size() / 2);

  HoneHome home;
  const Result refused = home.Hone({"models", "import", half});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("truncated or damaged"));
  const Result imported = home.Hone({"models", "import", file});
  ASSERT_EQ(imported.code, 0) << imported.errors;
  EXPECT_THAT(imported.output, HasSubstr("until this server has learned its own"));
  const nlohmann::json list = OneLineOfJson(home.Hone({"models", "list", "--json"}).output);
  ASSERT_EQ(list["models"].size(), 1u);
  EXPECT_TRUE(list["models"][0]["in_use"].get<bool>());
  EXPECT_THAT(list["models"][0]["origin"].get<std::string>(), HasSubstr("(store "));
  const Result shown = home.Hone({"models", "show", "draft"});
  EXPECT_EQ(shown.code, 0) << shown.errors;
  EXPECT_THAT(shown.output, HasSubstr("and imported"));
  EXPECT_THAT(shown.output, HasSubstr("gain: "));
  EXPECT_THAT(shown.output, HasSubstr("fma"));

  const Result tuned =
      home.Hone({"tune", "matmul", "m=80", "n=64", "k=32", "--trials", "8", "--json"});
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const Result judged =
      home.Hone({"models", "evaluate", "--stored",
                 std::to_string(list["models"][0]["stored_model"].get<int64_t>())});
  EXPECT_EQ(judged.code, 0) << judged.errors;
  EXPECT_THAT(judged.output, HasSubstr("nothing of 1 task"));
  EXPECT_EQ(DraftOfJob(home, OneLineOfJson(tuned.output)["job"]),
            list["models"][0]["stored_model"].get<int64_t>());
}

}  // namespace
}  // namespace hone::integration
