#include "client/network/export/kernel_object.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::client {
namespace {

// Object files of two kernels, compiled by the system's compiler, in a temporary folder.
class KernelObjectTest : public ::testing::Test {
 protected:
  void SetUp() override {
    one_ = Compile("one", "1", "-c");
    two_ = Compile("two", "2", "-c");
  }

  std::string Compile(const std::string& name, const std::string& value, const std::string& flags) {
    const std::string path = root_ / name;
    std::ofstream(path + ".c") << "static int hone_main(void) { return " << value
                               << "; }\nint hone_kernel_abi(void) { return 1; }\n"
                                  "int hone_kernel_run(void) { return hone_main(); }\n"
                                  "int outside(void);\nint reads(void) { return outside(); }\n";
    EXPECT_EQ(std::system(("cc -O0 -fPIC " + flags + " -o " + path + ".o " + path + ".c").c_str()),
              0);
    return ReadFile(path + ".o").value_or("");
  }

  const TemporaryFolder root_;
  std::string one_, two_;
};

// Definitions and uses get the new name.
TEST_F(KernelObjectTest, RenamesSymbolsByTheirPrefix) {
  auto renamed = RenameSymbols(one_, "hone_kernel_", "mine_");
  ASSERT_THAT(renamed, IsOk());
  renamed = RenameSymbols(*renamed, "out", "in");
  ASSERT_THAT(renamed, IsOk());
  std::ofstream(root_ / "renamed.o") << *renamed;
  std::ofstream(root_ / "main.c") << "int mine_run(void); int reads(void);\n"
                                     "int inside(void) { return 4; }\n"
                                     "int main(void) { return mine_run() + reads(); }\n";
  const int status =
      std::system(("cd " + root_.path() + " && cc -o main main.c renamed.o && ./main").c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_THAT(RenameSymbols("ELF", "a", "b"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(KernelObjectTest, OneProgramLinksTwoKernels) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto first, RenameFunctions(one_, "first"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto second,
                            RenameFunctions(two_, "a_name_that_is_much_longer_than_before"));
  std::ofstream(root_ / "first.o") << first;
  std::ofstream(root_ / "second.o") << second;
  // `reads` stands for a symbol that is not a function of the kernel interface. It keeps its name,
  // so only one of the two may be global.
  EXPECT_EQ(std::system(("objcopy --localize-symbol=reads " + root_ / "first.o").c_str()), 0);
  std::ofstream(root_ / "main.c") << "int first_run(void); int first_abi(void); int "
                                     "a_name_that_is_much_longer_than_before_run(void);\n"
                                     "int reads(void); int outside(void) { return 4; }\n"
                                     "int main(void) { return first_run() + 2 * "
                                     "a_name_that_is_much_longer_than_before_run() + reads() + "
                                     "first_abi(); }\n";
  const std::string link =
      "cd " + root_.path() + " && cc -o main main.c first.o second.o && ./main";
  const int status = std::system(link.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1 + 4 + 4 + 1);
}

TEST_F(KernelObjectTest, RejectsOtherFiles) {
  GoldenOfTest golden;
  golden.Add(RenameFunctions("", "k").status().message());
  golden.Add(RenameFunctions(std::string(4096, 'x'), "k").status().message());
  const std::string shared = Compile("shared", "3", "-shared");
  golden.Add(RenameFunctions(shared, "k").status().message());
  HONE_ASSERT_OK_AND_ASSIGN(const auto renamed, RenameFunctions(one_, "k"));
  golden.Add(RenameFunctions(renamed, "k").status().message());
}

// Truncated and overwritten files give an error or some object, but no read out of bounds (with
// asan).
TEST_F(KernelObjectTest, DamagedObjectsDoNotCrash) {
  for (size_t length = 0; length < one_.size(); length += 3) {
    EXPECT_FALSE(RenameFunctions(one_.substr(0, length), "k").ok()) << length;
  }
  for (size_t at = 0; at < one_.size(); ++at) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string damaged = one_;
      damaged[at] = value;
      RenameFunctions(damaged, "k").IgnoreError();
    }
  }
}

}  // namespace
}  // namespace hone::client
