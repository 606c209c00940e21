#include "common/target/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/target/host.h"
#include "tests/fakes/fake_root.h"
#include "tests/status.h"

namespace hone::target {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A folder that stands for / and describes a machine's caches.
class CachesTest : public ::testing::Test {
 protected:
  void AddCache(int cpu, int index, const std::string& level, const std::string& type,
                const std::string& size, const std::string& shared) {
    const std::string folder =
        absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/cache/index", index, "/");
    const auto write = [&](const char* name, const std::string& text) {
      root_.Write(folder + name, text + "\n");
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
    ReadCaches(root_.path(), cpus, target);
    return target;
  }

  const FakeRoot root_;
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A folder that stands for /.
class CpuClustersTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { root_.Write(path, text + "\n"); }
  // Adds an Arm core; a capacity or rate of 0 is not visible.
  void AddArm(int cpu, const std::string& part, int capacity, int rate_khz = 0) {
    absl::StrAppend(&cpuinfo_, "processor\t: ", cpu,
                    "\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: ", part, "\n\n");
    Write("/proc/cpuinfo", cpuinfo_);
    AddRates(cpu, capacity, rate_khz);
  }
  void AddRates(int cpu, int capacity, int rate_khz) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu", cpu);
    if (capacity > 0) Write(folder + "/cpu_capacity", absl::StrCat(capacity));
    if (rate_khz > 0) Write(folder + "/cpufreq/cpuinfo_max_freq", absl::StrCat(rate_khz));
  }
  std::vector<CpuCluster> Clusters(std::vector<int> cpus) {
    return CpuClusters(root_.path(), cpus);
  }

  const FakeRoot root_;
  std::string cpuinfo_;
};

// Rockchip RK3588: four A55 and twice two A76, of which two are selected for a higher clock rate.
TEST_F(CpuClustersTest, TellsKindsOfCoresAndCapacitiesApart) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    AddArm(cpu, cpu < 4 ? "0xd05" : "0xd0b", cpu < 4 ? 414 : cpu < 6 ? 1024 : 1000);
  }
  const auto clusters = Clusters({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(DescribeClusters(clusters),
            "0: CPUs 0-3, cortex-a55; 1: CPUs 4-5, cortex-a76; 2: CPUs 6-7, cortex-a76");
  EXPECT_THAT(FindCluster(clusters, "big")->cpus, ElementsAre(4, 5));
  EXPECT_THAT(FindCluster(clusters, "little")->cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(FindCluster(clusters, "2")->cpus, ElementsAre(6, 7));
  for (const char* const name : {"3", "-1", "medium", ""}) {
    EXPECT_THAT(FindCluster(clusters, name), StatusIs(absl::StatusCode::kInvalidArgument,
                                                      HasSubstr("0: CPUs 0-3, cortex-a55; 1: ")))
        << name;
  }
}

TEST_F(CpuClustersTest, OnlyUsableCpusCount) {
  for (int cpu = 0; cpu < 8; ++cpu) AddArm(cpu, cpu % 2 == 0 ? "0xd03" : "0xd08", 0);
  const auto clusters = Clusters({1, 2, 4, 5});
  EXPECT_EQ(DescribeClusters(clusters), "0: CPUs 1,5, cortex-a72; 1: CPUs 2,4, cortex-a53");
  EXPECT_THAT(FindCluster(clusters, "big"), StatusIs(absl::StatusCode::kInvalidArgument))
      << "Linux does not say which one is faster";
  EXPECT_THAT(FindCluster(clusters, "1")->cpus, ElementsAre(2, 4));
}

TEST_F(CpuClustersTest, ClockRatesOrderClustersButDoNotDivideThem) {
  AddArm(0, "0xd03", 0, 1'400'000);
  AddArm(1, "0xd03", 0, 1'500'000);
  AddArm(2, "0xd09", 0, 2'200'000);
  const auto clusters = Clusters({0, 1, 2});
  ASSERT_THAT(clusters, SizeIs(2));
  EXPECT_THAT(FindCluster(clusters, "little")->cpus, ElementsAre(0, 1));
  EXPECT_THAT(FindCluster(clusters, "big")->cpus, ElementsAre(2));
}

TEST_F(CpuClustersTest, KnowsHybridX86Processors) {
  Write("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
  Write("/sys/devices/cpu_core/cpus", "0-3");
  Write("/sys/devices/cpu_atom/cpus", "4-11");
  for (int cpu = 0; cpu < 12; ++cpu) AddRates(cpu, 0, cpu < 4 ? 5'000'000 : 3'800'000);
  std::vector<int> cpus(12);
  for (int cpu = 0; cpu < 12; ++cpu) cpus[cpu] = cpu;
  const auto clusters = Clusters(cpus);
  EXPECT_EQ(DescribeClusters(clusters), "0: CPUs 0-3, core; 1: CPUs 4-11, atom");
  EXPECT_EQ(FindCluster(clusters, "big")->core, "core");
}

TEST_F(CpuClustersTest, AMachineWithOneKindIsOneCluster) {
  const auto clusters = Clusters({0, 1, 2});
  EXPECT_EQ(DescribeClusters(clusters), "0: CPUs 0-2");
  EXPECT_THAT(FindCluster(clusters, "big")->cpus, ElementsAre(0, 1, 2));
  EXPECT_THAT(FindCluster({}, "big"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(UseCpusTest, RestrictsThreadsThatStartLater) {
  const std::vector<int> all = UsableCpus();
  std::thread([&] {
    ASSERT_THAT(UseCpus({all.back()}), IsOk());
    std::vector<int> inner;
    std::thread([&] { inner = UsableCpus(); }).join();
    EXPECT_THAT(inner, ElementsAre(all.back()));
    EXPECT_EQ(UsableCores(), 1);
  }).join();
  EXPECT_EQ(UsableCpus(), all) << "other threads are not restricted";
  EXPECT_THAT(UseCpus({}), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace

}  // namespace hone::target
