#include "common/target/caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace hone::target {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A folder that stands for / and describes a machine's caches.
class CachesTest : public ::testing::Test {
 protected:
  CachesTest() : root_(absl::StrCat(::testing::TempDir(), "/caches_", getpid())) {}
  ~CachesTest() override { std::filesystem::remove_all(root_); }

  void AddCache(int cpu, int index, const std::string& level, const std::string& type,
                const std::string& size, const std::string& shared) {
    const std::string folder =
        absl::StrCat(root_, "/sys/devices/system/cpu/cpu", cpu, "/cache/index", index, "/");
    std::filesystem::create_directories(folder);
    const auto write = [&](const char* name, const std::string& text) {
      std::ofstream(folder + name) << text << "\n";
    };
    write("level", level);
    write("type", type);
    write("size", size);
    write("shared_cpu_list", shared);
    write("coherency_line_size", "64");
  }

  // A server CPU: private L1 and L2, shared L3.
  void AddCpu(int cpu, const std::string& l3, const std::string& shared) {
    const std::string own = absl::StrCat(cpu);
    AddCache(cpu, 0, "1", "Data", "48K", own);
    AddCache(cpu, 1, "1", "Instruction", "32K", own);
    AddCache(cpu, 2, "2", "Unified", "1M", own);
    AddCache(cpu, 3, "3", "Unified", l3, shared);
  }

  Target Read(const std::vector<int>& cpus, int cores) {
    Target target{.cores = cores};
    ReadCaches(root_, cpus, target);
    return target;
  }

  std::string root_;
};

std::vector<int> CpusBelow(int count) {
  std::vector<int> cpus(count);
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

TEST_F(CachesTest, OneCacheForAll) {
  for (int cpu = 0; cpu < 4; ++cpu) AddCpu(cpu, "16384K", "0-3");
  const Target target = Read(CpusBelow(4), 4);
  EXPECT_EQ(target.l1_bytes, 48 << 10);
  EXPECT_EQ(target.l2_bytes, 1 << 20);
  EXPECT_EQ(target.l3_bytes, 16 << 20);
  EXPECT_EQ(target.cache_line_bytes, 64);
}

// An EPYC: every eight cores (sixteen threads) share 32 MiB.
TEST_F(CachesTest, ChipletsAddUp) {
  for (int cpu = 0; cpu < 256; ++cpu) {
    const int first = cpu % 128 / 8 * 8;
    AddCpu(cpu, "32768K", absl::StrCat(first, "-", first + 7, ",", first + 128, "-", first + 135));
  }
  EXPECT_EQ(Read(CpusBelow(128), 128).l3_bytes, int64_t{16} * (32 << 20));
  EXPECT_EQ(Read(CpusBelow(256), 256).l3_bytes, int64_t{16} * (32 << 20));
  EXPECT_EQ(Read({0, 1, 2, 7, 128}, 5).l3_bytes, 32 << 20) << "the cores of one chiplet";
  EXPECT_EQ(Read({6, 7, 8, 9}, 4).l3_bytes, 64 << 20) << "two cores of each of two chiplets";
  // A container with a quota of two cores: they run anywhere, but use at most two chiplets at a
  // time.
  EXPECT_EQ(Read(CpusBelow(256), 2).l3_bytes, 64 << 20);
}

TEST_F(CachesTest, OneChipletMayHaveMore) {
  for (int cpu = 0; cpu < 8; ++cpu) AddCpu(cpu, "96M", "0-7");
  for (int cpu = 8; cpu < 16; ++cpu) AddCpu(cpu, "32M", "8-15");
  EXPECT_EQ(Read(CpusBelow(16), 16).l3_bytes, 128 << 20);
  EXPECT_EQ(Read({8, 9}, 2).l3_bytes, 32 << 20);
}

TEST_F(CachesTest, UnreadableValuesAreUnchanged) {
  const Target none = Read(CpusBelow(4), 4);
  EXPECT_EQ(none, (Target{.cores = 4}));
  AddCpu(0, "nonsense", "");
  EXPECT_EQ(Read({0}, 1).l3_bytes, 0);
  EXPECT_EQ(Read({}, 1), Target{});
}

TEST(ParseCpuListTest, ReadsTheFilesOfTheKernel) {
  EXPECT_THAT(ParseCpuList("3"), ElementsAre(3));
  EXPECT_THAT(ParseCpuList("0-2,8"), ElementsAre(0, 1, 2, 8));
  for (const absl::string_view bad : {"", "x", "3-1", "1-2-3", "-4", "0-99999999"}) {
    EXPECT_THAT(ParseCpuList(bad), IsEmpty()) << bad;
  }
}

TEST(ReachableL3BytesTest, IsWhatSixteenCoresShare) {
  EXPECT_EQ(ReachableL3Bytes({.cores = 8, .l3_bytes = 32 << 20}), 32 << 20);
  EXPECT_EQ(ReachableL3Bytes({.cores = 128, .l3_bytes = 512 << 20}), 64 << 20);
}

}  // namespace
}  // namespace hone::target
