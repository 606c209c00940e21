// Compiles every operator with the default schedule and compares the results with the
// interpreter's.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include "common/ir/program.h"
#include "common/ir/reference_workload.h"
#include "common/schedule/default_schedule.h"
#include "tests/common/operator/arrays.h"
#include "tests/common/operator/examples.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::op {
namespace {

class CompiledTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CompiledTest, CompiledOperatorMatchesTheInterpreter) {
  const std::string line = GetParam();
  const auto workload = std::make_shared<const ir::Workload>(Built(line));
  const std::vector<Array> inputs = Inputs(*workload, 41, Kind::kReal);
  const std::vector<Array> expected = Compute(*workload, inputs);
  // Values, then the magnitudes that errors are measured against.
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, ir::ReferenceWorkload(*workload));
  const std::vector<Array> magnitudes = Compute(reference, inputs);
  std::vector<ir::Values> values;
  for (const Array& input : inputs) values.push_back(input.data);

  for (const target::Target& target : codegen::RunnableTargets()) {
    ir::Program program = ir::Program::FromWorkload(workload);
    ASSERT_THAT(schedule::ApplyDefaultSchedule(program, target.vector_bits / 32), IsOk());
    const auto compiled = codegen::CompiledProgram::Load(program, target);
    ASSERT_THAT(compiled, IsOk()) << program.ToText();
    const auto got = (*compiled)->Run(values);
    ASSERT_THAT(got, IsOk()) << program.ToText();
    ASSERT_EQ(got->size(), expected.size());
    for (size_t o = 0; o < expected.size(); ++o) {
      const ir::DType dtype = workload->tensors[workload->Outputs()[o]].dtype;
      const double unit = dtype == ir::DType::kBF16  ? 0x1p-8
                          : dtype == ir::DType::kF16 ? 0x1p-11
                          : ir::IsFloat(dtype)       ? 0x1p-23
                                                     : 0;
      for (size_t i = 0; i < expected[o].data.size(); ++i) {
        const double bound = 100 * unit * (1e-3 + magnitudes[expected.size() + o].data[i]);
        ASSERT_NEAR(got->at(o)[i], expected[o].data[i], bound)
            << line << ", element " << i << " of output " << o;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CompiledTest, ::testing::ValuesIn(kExamples),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace hone::op
