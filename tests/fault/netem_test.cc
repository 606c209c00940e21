// A worker behind a slow network with packet loss: a separate network namespace with netem.

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"

namespace hone::fault {
namespace {

using integration::Eventually;
using integration::Process;
using integration::Result;
using integration::RunProgram;

class NetemTest : public ::testing::Test {
 protected:
  // Returns why the machine does not allow it, or "".
  std::string SetUpNetwork() {
    if (geteuid() != 0) return "only root may make network namespaces";
    const std::vector<std::string> steps = {
        absl::StrCat("ip netns add ", name_),
        absl::StrCat("ip link add ", name_, "a type veth peer name ", name_, "b netns ", name_),
        absl::StrCat("ip addr add 10.203.77.1/30 dev ", name_, "a"),
        absl::StrCat("ip link set ", name_, "a up"),
        absl::StrCat("ip -n ", name_, " addr add 10.203.77.2/30 dev ", name_, "b"),
        absl::StrCat("ip -n ", name_, " link set ", name_, "b up"),
        absl::StrCat("tc qdisc add dev ", name_, "a root netem delay 40ms 10ms loss 2%"),
        absl::StrCat("ip netns exec ", name_, " tc qdisc add dev ", name_,
                     "b root netem delay 40ms 10ms loss 2%"),
    };
    for (const std::string& step : steps) {
      const Result result = RunProgram({"/bin/sh", "-c", step});
      if (result.code != 0) return absl::StrCat(step, ": ", result.output, result.errors);
    }
    return "";
  }
  void TearDown() override {
    if (geteuid() != 0) return;
    RunProgram({"/bin/sh", "-c", absl::StrCat("ip netns del ", name_, " 2>/dev/null")});
    RunProgram({"/bin/sh", "-c", absl::StrCat("ip link del ", name_, "a 2>/dev/null")});
  }

  const std::string name_ = absl::StrCat("hn", getpid() % 100000);
  TemporaryFolder folder_;
};

TEST_F(NetemTest, JobFinishesOverASlowLossyNetwork) {
  if (const std::string why = SetUpNetwork(); !why.empty()) GTEST_SKIP() << why;
  Process server({"hone-server", "--listen", "10.203.77.1:0", "--listen",
                  "unix:" + folder_ / "server.sock", "--insecure", "--store", folder_ / "hone.db",
                  "--ready-file", folder_ / "ready"});
  std::string address;
  ASSERT_TRUE(Eventually([&] {
    const Result ready = RunProgram({"/bin/cat", folder_ / "ready"});
    const size_t at = ready.output.find("10.203.77.1:");
    if (at == std::string::npos) return false;
    address = ready.output.substr(at, ready.output.find('\n', at) - at);
    return true;
  })) << server.Errors();
  Process worker({"/bin/sh", "-c",
                  absl::StrCat("exec ip netns exec ", name_, " ", integration::BinDir(),
                               "/hone-worker --insecure --name far --server ", address,
                               " --state-dir ", folder_ / "worker")});
  const Result tune = RunProgram({"hone", "--server", "unix:" + folder_ / "server.sock", "tune",
                                  "matmul", "m=32", "n=32", "k=32", "--trials", "8", "--json"},
                                 {}, absl::Seconds(240));
  EXPECT_EQ(tune.code, 0) << tune.errors << worker.Errors() << server.Errors();
  const nlohmann::json run = integration::OneLineOfJson(tune.output);
  ASSERT_TRUE(run.is_object()) << tune.output;
  EXPECT_EQ(run["trials"], 8);
}

}  // namespace
}  // namespace hone::fault
