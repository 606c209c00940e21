#ifndef HONE_SERVER_TUNER_SPACE_GPU_DOT_INSTRUCTION_H_
#define HONE_SERVER_TUNER_SPACE_GPU_DOT_INSTRUCTION_H_

#include "common/ir/intrinsic.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "server/tuner/space/contraction.h"

namespace hone::space {

// Returns the instruction of the target that adds several products of a contraction to one sum, as
// dp4a does. Returns nullptr if none computes with its types, if the innermost reduction is not a
// multiple of the instruction's terms, or if it is not a dimension of both operands.
const ir::Intrinsic* DotInstructionFor(const ir::Program& program, const ir::Block& block,
                                       const Contraction& contraction,
                                       const target::Target& target);
// The number of products that the instruction adds.
int64_t TermsOf(const ir::Intrinsic& dot);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GPU_DOT_INSTRUCTION_H_
