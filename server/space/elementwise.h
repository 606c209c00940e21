#ifndef HONE_SERVER_SPACE_ELEMENTWISE_H_
#define HONE_SERVER_SPACE_ELEMENTWISE_H_

#include "common/ir/program.h"

namespace hone::space {

// The block whose result this block consumes element by element: it reads just one computed tensor,
// at its own iteration variables and at all of them. kNoNode when there is none, or when another
// block reads that tensor as well.
ir::NodeId ElementwiseProducer(const ir::Program& program, ir::NodeId block);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_ELEMENTWISE_H_
