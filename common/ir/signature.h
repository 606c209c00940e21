#ifndef HONE_COMMON_IR_SIGNATURE_H_
#define HONE_COMMON_IR_SIGNATURE_H_

#include <string>
#include <vector>

#include "common/ir/workload.h"

namespace hone::ir {

// A workload in one line, for messages and tables: "matmul(f32[2, 3], f32[3, 4]) -> f32[2, 4]".
std::string SignatureOf(const Workload& workload);
// The types of some of its tensors: "f32[2, 3], f32[3, 4]".
std::string TypesOf(const Workload& workload, const std::vector<BufferId>& ids);
// The same for the text of a workload; its first line if it cannot be parsed.
std::string SignatureOfText(const std::string& text);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_SIGNATURE_H_
