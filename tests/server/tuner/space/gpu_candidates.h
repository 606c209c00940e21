#ifndef HONE_TESTS_SERVER_TUNER_SPACE_GPU_CANDIDATES_H_
#define HONE_TESTS_SERVER_TUNER_SPACE_GPU_CANDIDATES_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/target/target.h"
#include "server/tuner/space/design_space.h"

namespace hone::space {

using MakeGpuSpaces = std::function<std::vector<std::unique_ptr<DesignSpace>>(
    const std::shared_ptr<const ir::Workload>& workload, const target::Target& target)>;

// The two functions take the text of a workload, and draw candidates for an OpenCL device, for a
// Mali GPU and for an NVIDIA GPU.
//
// Expects that candidates are within the limits of the target and compute the workload, also if the
// threads of a block run in other orders.
void ExpectRightResults(const char* text, const MakeGpuSpaces& make);
// Expects that at most 2 % of the candidates of all spaces do not replay, and that the others are
// within the limits.
void ExpectFewInvalid(const char* text, const MakeGpuSpaces& make, int candidates);

// The name of a test whose parameter is the text of a workload.
std::string GpuTestName(const testing::TestParamInfo<const char*>& info);

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_TUNER_SPACE_GPU_CANDIDATES_H_
