// `hone lock` and `--locked`: the chosen kernels of an operator and a network are used although
// others are known, and drift has an exit code of its own.

#include <fstream>
#include <string>

#include "client/cli/npy.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int kDrift = 6;
constexpr char kMnist[] = "tests/client/network/onnx/testdata/mnist-8.onnx";
const Words kRelu = {"relu", "m=64", "n=48"};

class LockTest : public ::testing::Test {
 protected:
  json Hone(const Words& words, int code = 0) const {
    const Result result = home_.Hone(With(words, {"--json"}));
    EXPECT_EQ(result.code, code) << result.errors;
    return OneLineOfJson(result.output);
  }
  json Best(const Words& more = {}) const { return Hone(With(With({"best"}, kRelu), more)); }
  json Lock() const {
    std::ifstream file(lock_);
    return json::parse(file);
  }
  // Runs a command with the changed file. Returns its message.
  std::string DriftAfter(const char* member, const json& value, int code = kDrift) const {
    const json before = Lock();
    json changed = before;
    changed["kernels"][0][member] = value;
    std::ofstream(lock_) << changed;
    const json report = Hone(With(With({"best"}, kRelu), {"--locked", lock_}), code);
    std::ofstream(lock_) << before;
    return report.value("error", "");
  }

  // Runs the operator, whose input has 64 rows of 48 elements.
  Words Run(const Words& words) const {
    std::ofstream(files_ / "x.npy") << client::NpyHeader(ir::DType::kF32, {64, 48})
                                    << std::string(sizeof(float) * 64 * 48, '\0');
    return With(With({"run"}, words),
                {"--in", files_ / "x.npy", "--out", files_ / "y.npy", "--locked", lock_});
  }

  HoneHome home_;
  TemporaryFolder files_;
  const std::string lock_ = files_ / "hone.lock";
};

TEST_F(LockTest, TheLockedKernelStaysInUse) {
  Transcript transcript("lock", {"hone"}, home_.variables());
  transcript.Run(With({"lock", lock_}, kRelu));  // nothing is known
  EXPECT_FALSE(std::ifstream(lock_).good());
  Hone(With({"tune", "--trials", "6"}, kRelu));
  transcript.Run(With({"best", "--locked", lock_}, kRelu));  // no file
  const json locked = Hone(With({"lock", lock_}, kRelu))["kernels"][0];
  const json first = Best();
  EXPECT_EQ(locked["record"], first["best"]["record"]);
  EXPECT_EQ(locked["latency_ns"], first["best"]["latency_ns"]);
  EXPECT_TRUE(locked["replaced_record"].is_null());
  EXPECT_EQ(Best({"--locked", lock_}), first) << "as long as it is the best";

  // Measured again, the best is another record.
  Hone(With({"revalidate", "--all", "--top", "2"}, kRelu));
  const json later = Best();
  ASSERT_NE(later["best"]["record"], first["best"]["record"]);
  const json still = Best({"--locked", lock_});
  for (const char* const key : {"record", "latency_ns", "trace"}) {
    EXPECT_EQ(still["best"][key], first["best"][key]) << key;
  }
  const std::string folder = files_ / "kernel";
  const json exported = Hone(With(With({"export"}, kRelu), {"--locked", lock_, "-o", folder}));
  EXPECT_EQ(exported["best"]["record"], first["best"]["record"]);
  EXPECT_EQ(Hone(Run(kRelu))["best"]["record"], first["best"]["record"]);
  EXPECT_EQ(Hone(With({"lock", lock_}, kRelu))["kernels"][0]["replaced_record"],
            first["best"]["record"]);
  EXPECT_EQ(Best({"--locked", lock_}), later);
}

TEST_F(LockTest, DriftIsRefused) {
  Hone(With({"tune", "--trials", "6"}, kRelu));
  Hone(With({"lock", lock_}, kRelu));
  const json kernel = Lock()["kernels"][0];
  EXPECT_THAT(DriftAfter("record", 4711), HasSubstr("record 4711 is not in the store"));
  EXPECT_THAT(DriftAfter("trace_digest", kernel["workload_digest"]),
              HasSubstr("is now of another schedule"));
  EXPECT_THAT(DriftAfter("target", "x86_64-other"),
              HasSubstr("it is locked for x86_64-other, not"));
  EXPECT_THAT(DriftAfter("kernel_abi", 1), HasSubstr("version 1 of the kernel ABI"));
  EXPECT_THAT(DriftAfter("workload_digest", kernel["trace_digest"]),
              HasSubstr("it is not in the file"));
  EXPECT_THAT(DriftAfter("record", "7", 2), HasSubstr("a member is missing or malformed"));

  // Every command refuses it, and none measures something instead.
  const Words other = {"relu", "m=8", "n=8", "--locked", lock_};
  Hone(With({"export", "-o", files_ / "kernel"}, other), kDrift);
  Hone(With({"check", "--baseline", files_ / "none.json", "--save"}, other), kDrift);
  Hone(Run({"silu", "m=64", "n=48"}), kDrift);
  const json jobs = Hone({"jobs", "list"});
  EXPECT_EQ(jobs["jobs"].size(), 1u) << jobs;

  // A forgotten record is not used either.
  Hone(With({"forget"}, kRelu));
  EXPECT_THAT(Hone(With(With({"best"}, kRelu), {"--locked", lock_}), kDrift).value("error", ""),
              HasSubstr("is quarantined: forgotten"));
}

TEST_F(LockTest, ANetworkIsCheckedWithLockedKernels) {
  const std::string baseline = files_ / "speed.json";
  const Words check = {"check",  kMnist, "--baseline", baseline,
                       "--time", "0.1s", "--locked",   lock_};
  Hone({"tune", kMnist, "--trials", "5"});
  EXPECT_EQ(Hone({"lock", lock_, kMnist})["kernels"].size(), 5u);
  Hone(With(check, {"--save", "--even-if-disturbed"}));
  const std::string junit = files_ / "check.xml", markdown = files_ / "check.md";
  const Words files = {"--max-regression", "1000%", "--junit", junit, "--markdown", markdown};
  EXPECT_TRUE(Eventually([&] { return home_.Hone(With(check, files)).code == 0; }));
  EXPECT_THAT(ReadFile(junit).value(), HasSubstr("failures=\"0\" errors=\"0\" skipped=\"0\""));
  EXPECT_THAT(ReadFile(markdown).value(), HasSubstr("mnist-8.onnx: passed"));

  // One kernel is missing: the error is in the files for CI as well.
  json lock = Lock();
  lock["kernels"].erase(0);
  std::ofstream(lock_) << lock;
  EXPECT_EQ(home_.Hone(With(check, files)).code, kDrift);
  EXPECT_THAT(ReadFile(junit).value(), HasSubstr("1 of 5 kernels of "));
  EXPECT_THAT(ReadFile(junit).value(), HasSubstr("errors=\"1\""));
  EXPECT_THAT(ReadFile(markdown).value(), HasSubstr("mnist-8.onnx: not compared"));
  EXPECT_EQ(home_.Hone({"best", kMnist, "--locked", lock_}).code, kDrift);
}

}  // namespace
}  // namespace hone::integration
