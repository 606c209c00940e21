#include "worker/agent/child_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HONE_ASSERT_OK_AND_ASSIGN(output_, OutputFolder::Make(folder_ / "outputs"));
  }
  std::string Path(const std::string& name) const { return output_->path() + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<OutputFolder> output_;
};

TEST_F(OutputFolderTest, IsForOneProcessAndGoesWithIt) {
  HONE_ASSERT_OK_AND_ASSIGN(auto other, OutputFolder::Make(folder_ / "outputs"));
  EXPECT_NE(other->path(), output_->path());
  EXPECT_EQ(fs::status(other->path()).permissions(), fs::perms::owner_all);
  fs::create_directories(other->path() + "/a/b");
  const std::string path = other->path();
  other.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(output_->path()));
}

TEST_F(OutputFolderTest, GivesItsOnlyFile) {
  Write("a", "bytes");
  EXPECT_EQ(output_->Take("a", 5).value(), "bytes");
  EXPECT_FALSE(fs::exists(Path("a")));
  EXPECT_THAT(output_->Take("a", 5), StatusIs(absl::StatusCode::kNotFound));
  Write("b", "more");
  EXPECT_THAT(output_->MoveTo("b", folder_ / "moved"), IsOk());
  EXPECT_EQ(ReadFile(folder_ / "moved").value(), "more");
  EXPECT_FALSE(fs::exists(Path("b")));
}

TEST_F(OutputFolderTest, RefusesEverythingElse) {
  const auto refuse = [&](const char* why) {
    for (const absl::Status& status :
         {output_->Take("a", 100).status(), output_->MoveTo("a", folder_ / "moved")}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(why)));
    }
    EXPECT_FALSE(fs::exists(folder_ / "moved"));
    output_->Clear();
    EXPECT_TRUE(fs::is_empty(output_->path()));
  };
  std::ofstream(folder_ / "secret") << "secret";
  Write("a", "bytes");
  Write("b", "more");
  refuse("b");
  fs::create_symlink(folder_ / "secret", Path("a"));
  refuse("a");
  fs::create_hard_link(folder_ / "secret", Path("a"));
  refuse("has another name");
  ASSERT_EQ(mkfifo(Path("a").c_str(), 0600), 0);
  refuse("is not a regular file");
  fs::create_directory(Path("a"));
  refuse("is not a regular file");
  EXPECT_EQ(ReadFile(folder_ / "secret").value(), "secret");
  Write("a", "bytes");
  EXPECT_THAT(output_->Take("a", 4), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(InputFolderTest, HasTheFilesOfNowAndNoOthers) {
  const TemporaryFolder folder;
  for (const char* const name : {"a", "b", "c"}) std::ofstream(folder / name) << name;
  HONE_ASSERT_OK_AND_ASSIGN(auto input, InputFolder::Make(folder / "inputs"));
  const auto has = [&] {
    std::string names;
    for (const char* const name : {"a", "b", "c"}) {
      const absl::StatusOr<std::string> text = ReadFile(input->PathOf(folder / name));
      if (text.ok()) names += *text;
    }
    return names;
  };
  EXPECT_THAT(input->Hold({folder / "a", folder / "b", folder / "a"}), IsOk());
  EXPECT_EQ(has(), "ab");
  EXPECT_THAT(input->Hold({folder / "c", folder / "b"}), IsOk());
  EXPECT_EQ(has(), "bc");
  EXPECT_THAT(input->Hold({folder / "b", folder / "missing"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
  EXPECT_EQ(has(), "b") << "what was there stays";
  // The file belongs to the worker, which removes it when it wants.
  fs::remove(folder / "b");
  EXPECT_EQ(has(), "b");
  EXPECT_THAT(input->Hold({}), IsOk());
  EXPECT_EQ(has(), "");
  EXPECT_EQ(input->PathOf(""), "");
  const std::string path = input->path();
  input.reset();
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace hone::agent
