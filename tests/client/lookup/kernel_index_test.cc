#include "client/lookup/kernel_index.h"

#include <clocale>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::lookup {
namespace {

using ::testing::ElementsAre;

constexpr char kIndex[] =
    "hone kernels 1\n"
    "operator conv2d -k -s=1 -p=0 kh=@k kw=@k sh=@s sw=@s ph=@p pw=@p dtype=f32 acc=@dtype\n"
    "kernel 0123456789abcdef\n"
    "name matmul acc=f32 dtype=f32 k=32 m=64 n=48\n"
    "name mine\n"
    "workload 0123456789abcdef0123456789abcdef\n"
    "target key x86_64 avx avx2\n"
    "measured 0.001 1234.5 6e+20\n"
    "input A f32 8192 64 32\n"
    "constant B f32 6144 32 48\n"
    "output C f32 4 \n";

std::string Whole(const std::string& lines) {
  return absl::StrCat(lines, "end ", Checksum(lines), "\n");
}

std::string ErrorOf(const std::string& text) {
  Index index;
  std::string error;
  EXPECT_FALSE(Parse(text, index, error)) << text;
  return error;
}

TEST(KernelIndexTest, WhatIsPrintedIsReadBack) {
  // A locale with a decimal comma, if this machine has it, changes nothing.
  std::setlocale(LC_NUMERIC, "de_DE.UTF-8");
  Index index, again;
  std::string error;
  ASSERT_TRUE(Parse(Whole(kIndex), index, error)) << error;
  ASSERT_TRUE(Parse(Print(index), again, error)) << error;
  std::setlocale(LC_NUMERIC, "C");
  EXPECT_EQ(Print(index), Print(again));
  ASSERT_EQ(again.kernels.size(), 1u);
  const Kernel& kernel = again.kernels[0];
  EXPECT_THAT(kernel.names, ElementsAre("matmul acc=f32 dtype=f32 k=32 m=64 n=48", "mine"));
  EXPECT_THAT(kernel.features, ElementsAre("avx", "avx2"));
  EXPECT_EQ(kernel.tolerance, 0.001);
  EXPECT_EQ(kernel.gflops, 6e20);
  ASSERT_EQ(kernel.buffers.size(), 3u);
  EXPECT_EQ(kernel.buffers[1].role, Role::kConstant);
  EXPECT_THAT(kernel.buffers[1].shape, ElementsAre(32, 48));
  EXPECT_EQ(kernel.buffers[2].role, Role::kOutput);
  EXPECT_THAT(kernel.buffers[2].shape, ElementsAre());
}

TEST(KernelIndexTest, DamageIsDetected) {
  const std::string whole = Whole(kIndex);
  for (size_t length = 0; length < whole.size(); ++length) ErrorOf(whole.substr(0, length));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    ErrorOf(damaged);
  }
  GoldenOfTest().Add(ErrorOf(whole + "more\n"));
}

TEST(KernelIndexTest, AnotherVersionIsNamed) {
  GoldenOfTest golden;
  golden.Add(ErrorOf(Whole("hone kernels 2\n")));
  golden.Add(ErrorOf("{}"));
}

TEST(KernelIndexTest, MalformedLinesAreRefused) {
  GoldenOfTest golden;
  for (const char* line :
       {"kernel ../0123456789abc", "kernel /bin/sh", "kernel", "kernel 0123", "unknown 1", "",
        "operator matmul dtype", "operator matmul -", "operator matmul -=1", "operator matmul -k=",
        "workload 0123", "target key", "measured 0 1", "measured nan 1 1", "measured 0 -1 1",
        "measured 0 1x 1", "input A f32", "input A f32 x", "input A f32 4 99999999999999999999"}) {
    golden.Add(line, ErrorOf(Whole(absl::StrCat(kIndex, line, "\n"))));
  }
  golden.Add(ErrorOf(Whole("hone kernels 1\nname x\n")));
  golden.Add(ErrorOf(Whole("hone kernels 1\nkernel 0123456789abcdef\nname x\n")));
}

TEST(KernelIndexTest, AllSpellingsOfWordsHaveOneForm) {
  Index index;
  std::string error;
  ASSERT_TRUE(Parse(Whole(kIndex), index, error)) << error;
  const auto canonical = [&](const char* words) { return Canonical(words, index.defaults); };
  const std::string form =
      "conv2d acc=f32 dtype=f32 kh=3 kw=3 n=1 ph=1 pw=1 sh=1 sw=1";  // keys that decide, sorted
  for (const char* words :
       {"conv2d n=1 k=3 p=1", "  conv2d k=3\ts=1 p=1 kw=3 n=1 acc=f32\n",
        "conv2d n=1 kh=3 kw=3 p=1", "conv2d n=1 kh=3 kw=3 ph=1 pw=1",
        "conv2d n=1 k=5 p=7 kh=3 kw=3 ph=1 pw=1", "conv2d n=01 k=003 s=+1 p=1 pw=1"}) {
    EXPECT_EQ(canonical(words), form) << words;
  }
  EXPECT_EQ(canonical("conv2d kh=3 kw=5 s=2 pw=00"),
            "conv2d acc=f32 dtype=f32 kh=3 kw=5 ph=0 pw=0 sh=2 sw=2");
  EXPECT_EQ(canonical("conv2d k=3 sh=10 sw=100 dtype=f16 p=-0"),
            "conv2d acc=f16 dtype=f16 kh=3 kw=3 ph=0 pw=0 sh=10 sw=100");
  EXPECT_EQ(canonical("conv2d k=3 n=-1 ci=+ co=0x10"),
            "conv2d acc=f32 ci=+ co=0x10 dtype=f32 kh=3 kw=3 n=-1 ph=0 pw=0 sh=1 sw=1");
  EXPECT_EQ(canonical("unknown b=1 a=2"), "unknown a=2 b=1");
  EXPECT_EQ(canonical("conv2d"), "conv2d") << "a name";
  EXPECT_EQ(canonical(" 007 "), "007") << "a name";
  for (const char* wrong : {"", "  ", "conv2d k", "conv2d =1", "conv2d k=", "conv2d k=1 k=1"}) {
    EXPECT_EQ(canonical(wrong), "") << wrong;
  }
}

TEST(KernelIndexTest, AFileThatCannotBeReadIsAnError) {
  std::string content;
  EXPECT_FALSE(ReadFile("/nowhere", content));
  EXPECT_FALSE(ReadFile("/proc/self", content));
  // Opens like any file; the first page of a process is not mapped, so that reading it fails.
  EXPECT_FALSE(ReadFile("/proc/self/mem", content));
  EXPECT_TRUE(ReadFile("/proc/self/stat", content));
  EXPECT_FALSE(content.empty());
}

}  // namespace
}  // namespace hone::lookup
