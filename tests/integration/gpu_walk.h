#ifndef HONE_TESTS_INTEGRATION_GPU_WALK_H_
#define HONE_TESTS_INTEGRATION_GPU_WALK_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"

// The whole workflow on a GPU of this machine, as a user runs it: list, tune, best, show, export,
// run, check.
namespace hone::integration {

using Floats = std::vector<float>;

// A tensor of a workload in a test.
struct Array {
  std::string name;
  ir::Shape shape;
  Floats values;

  std::string Npy() const;
};
// Values in [-1, 1] that differ from element to element.
Array Input(const std::string& name, const ir::Shape& shape, int step);

// An operator with inputs and the right output.
struct Case {
  Words words;
  std::vector<Array> inputs;
  Array output;
};
Case Matmul(int m = 48);
Case Softmax();

// Writes a file; returns its path.
std::string File(const TemporaryFolder& folder, const std::string& name,
                 const std::string& content);

// What differs between interfaces for GPUs.
struct GpuOfWalk {
  std::string interface;           // "opencl": of --target
  std::string key;                 // the beginning of its targets' keys
  std::vector<std::string> code;   // words of the kernels' code
  std::vector<std::string> files;  // suffixes of an export; the first one is what programs load
};

class GpuWalk : public ::testing::Test {
 protected:
  explicit GpuWalk(GpuOfWalk gpu) : gpu_(std::move(gpu)) {}

  // Skips the test if there is no device.
  void NeedDevice();
  // The object that a successful command printed.
  nlohmann::json Object(const Words& words);
  void ExpectError(int code, const Words& words, const ::testing::Matcher<std::string>& message);
  Words Target() const { return {"--target", gpu_.interface}; }

  void ExpectListed();
  void Walk(const Case& c);
  // Tunes a small network, runs it and compares its output, times it, saves a baseline, and runs
  // the program of its export.
  void WalkNetwork();
  // The same for several sizes of an operator and of a network, which become one library each.
  void WalkOperatorSizes();
  void WalkNetworkSizes();

  const GpuOfWalk gpu_;
  HoneHome home_;
  TemporaryFolder folder_;
  std::string target_;  // key

 private:
  void Tune(const Case& c);
  void Show(const Case& c);
  void Export(const Case& c);
  void Run(const Case& c);
  void Check(const Case& c);
  // The first output of the export "net" in a folder, which Python calls.
  Floats CallExport(const std::string& folder, const std::vector<Array>& inputs);
};

}  // namespace hone::integration

#endif  // HONE_TESTS_INTEGRATION_GPU_WALK_H_
