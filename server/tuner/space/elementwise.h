#ifndef HONE_SERVER_TUNER_SPACE_ELEMENTWISE_H_
#define HONE_SERVER_TUNER_SPACE_ELEMENTWISE_H_

#include "common/ir/program.h"

namespace hone::space {

// Returns the block whose result this block consumes element by element: this block reads only one
// computed tensor, indexed by all of its own iteration variables. kNoNode if there is none, if
// another block also reads that tensor, or if this block computes guarded values, which are not
// moved to a producer. `transposes`: the variables may index the tensor in any order.
ir::NodeId ElementwiseProducer(const ir::Program& program, ir::NodeId block,
                               bool transposes = false);

// Whether a block copies single elements. It may reduce over one point, because a guard needs a
// reduction. (A product of one channel also reduces over one point, but reads two elements.)
bool CopiesElements(const ir::Program& program, const ir::Block& block);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_ELEMENTWISE_H_
