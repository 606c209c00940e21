#ifndef HONE_TESTS_WORKER_COMPILE_SIMULATED_TILES_H_
#define HONE_TESTS_WORKER_COMPILE_SIMULATED_TILES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "tests/worker/compile/compiled_program.h"

namespace hone::codegen {

// Compiles a program for a target with AMX, replaces the instructions on tiles in LLVM's IR by
// calls of functions of this process, and loads the result for a CPU with AVX2. What LLVM makes of
// the instructions themselves (the configuration and the numbers of registers) is not tested this
// way.
absl::StatusOr<std::unique_ptr<CompiledProgram>> LoadWithSimulatedTiles(
    const ir::Program& program, const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_SIMULATED_TILES_H_
