#include "worker/builder/link.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/target/kernel_abi.h"
#include "tests/status.h"

namespace hone::builder {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Link(const std::string& object_path) {
  absl::StatusOr<std::string> bytes = LinkSharedObject(ReadFile(object_path).value(), {});
  EXPECT_THAT(bytes, IsOk());
  return bytes.ok() ? *bytes : "";
}

// Loads a shared object from memory, as the runner does.
void* Load(const std::string& bytes) {
  const int fd = memfd_create("kernel", 0);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  void* const handle = dlopen(absl::StrCat("/proc/self/fd/", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  close(fd);
  return handle;
}

TEST(LinkTest, AKernelLinksLoadsAndRuns) {
  void* const handle = Load(Link(GOOD_OBJECT));
  ASSERT_NE(handle, nullptr);
  const auto run = reinterpret_cast<target::RunFunction>(dlsym(handle, target::kRunSymbol));
  ASSERT_NE(run, nullptr);
  std::vector<float> a(64 * 32, 2), b(32 * 48, 3), c(64 * 48, 0);
  void* const buffers[] = {a.data(), b.data(), c.data()};
  EXPECT_EQ(run(buffers, nullptr, nullptr, nullptr), target::kKernelOk);
  for (const float value : c) EXPECT_EQ(value, 2 * 3 * 32);
  // Otherwise, dlopen() takes the next kernel with the same path for this one.
  EXPECT_EQ(dlclose(handle), 0);
}

TEST(LinkTest, EqualInputGivesEqualBytes) { EXPECT_EQ(Link(GOOD_OBJECT), Link(GOOD_OBJECT)); }

TEST(LinkTest, LibrariesBecomeDependenciesOnlyWhenUsed) {
  EXPECT_THAT(Link(MATH_OBJECT), HasSubstr("libm.so.6"));
  EXPECT_THAT(Link(GOOD_OBJECT), Not(HasSubstr("libm.so.6")));
}

TEST(LinkTest, OnlyTheInterfaceIsVisible) {
  const std::string bytes = Link(GOOD_OBJECT);
  auto object = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(bytes), "kernel"));
  ASSERT_TRUE(static_cast<bool>(object));
  const auto* const elf = llvm::cast<llvm::object::ELFObjectFileBase>(object->get());
  int interface = 0;
  for (const auto& symbol : elf->getDynamicSymbolIterators()) {
    if (*symbol.getFlags() & llvm::object::SymbolRef::SF_Undefined) continue;
    const std::string name = symbol.getName()->str();
    EXPECT_THAT(name, ::testing::StartsWith("hone_kernel_"));
    ++interface;
  }
  EXPECT_EQ(interface, 8);
}

TEST(LinkTest, ObjectsProvideEachOthersSymbols) {
  const std::string caller = ReadFile(CALLER_OBJECT).value(),
                    callee = ReadFile(CALLEE_OBJECT).value();
  const std::vector<absl::string_view> objects = {caller, callee};
  HONE_ASSERT_OK_AND_ASSIGN(const auto bytes, LinkSharedObject(objects, {.visible = "caller_"}));
  void* const handle = Load(bytes);
  ASSERT_NE(handle, nullptr);
  const auto run = reinterpret_cast<int (*)()>(dlsym(handle, "caller_run"));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run(), 42);
  EXPECT_EQ(dlsym(handle, "callee_value"), nullptr);
  EXPECT_EQ(dlclose(handle), 0);

  const std::vector<absl::string_view> twice = {callee, callee};
  EXPECT_THAT(LinkSharedObject(twice, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("callee_value")));
}

TEST(LinkTest, ThereMayBeMoreObjectsThanOpenFiles) {
  // An object file without sections.
  llvm::ELF::Elf64_Ehdr header{};
  std::memcpy(header.e_ident, "\177ELF\2\1\1", 7);
  header.e_type = llvm::ELF::ET_REL;
  header.e_machine = llvm::ELF::EM_X86_64;
  header.e_version = 1;
  header.e_ehsize = sizeof(header);
  const std::string empty(reinterpret_cast<const char*>(&header), sizeof(header));
  const std::string callee = ReadFile(CALLEE_OBJECT).value();
  std::vector<absl::string_view> objects(1000, empty);
  objects.push_back(callee);
  rlimit files;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit few{.rlim_cur = 128, .rlim_max = files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const absl::StatusOr<std::string> bytes = LinkSharedObject(objects, {.visible = "callee_"});
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_THAT(bytes, IsOk());
  void* const handle = Load(*bytes);
  ASSERT_NE(handle, nullptr);
  EXPECT_NE(dlsym(handle, "callee_value"), nullptr);
  EXPECT_EQ(dlclose(handle), 0);
}

TEST(LinkTest, AnUndefinedSymbolIsAnErrorThatNamesIt) {
  EXPECT_THAT(LinkSharedObject(ReadFile(UNDEFINED_OBJECT).value(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("function_of_no_library")));
  EXPECT_FALSE(Link(GOOD_OBJECT).empty());  // the linker still works
}

TEST(LinkTest, AFullDiskIsNotTheFaultOfTheObjects) {
  const std::string callee = ReadFile(CALLEE_OBJECT).value();
  HONE_ASSERT_OK_AND_ASSIGN(const auto linked, LinkSharedObject(callee, {.visible = "callee_"}));
  // A limit that the copy of the object does not exceed, but the output does.
  const rlim_t limit = callee.size() + 128;
  ASSERT_GT(linked.size(), limit);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit little = {.rlim_cur = limit, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status status = LinkSharedObject(callee, {.visible = "callee_"}).status();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(LinkTest, RejectsInvalidObjects) {
  for (const absl::string_view bytes : {"", "not an object",
                                        "\x7f"
                                        "ELF"}) {
    EXPECT_THAT(LinkSharedObject(bytes, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(LinkTest, AFolderThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(LinkSharedObject(ReadFile(GOOD_OBJECT).value(), {.scratch_dir = "/no/such/folder"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/folder")));
}

}  // namespace
}  // namespace hone::builder
