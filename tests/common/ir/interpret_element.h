#ifndef HONE_TESTS_COMMON_IR_INTERPRET_ELEMENT_H_
#define HONE_TESTS_COMMON_IR_INTERPRET_ELEMENT_H_

#include <utility>

#include "common/ir/interpreter.h"

namespace hone::ir {

// Computes one element with a new interpreter, which knows no other elements.
inline ElementValue InterpretElement(const Workload& workload, BufferId tensor,
                                     absl::Span<const int64_t> indices,
                                     ElementInterpreter::Read read) {
  return ElementInterpreter(workload, std::move(read)).Interpret(tensor, indices).value();
}

}  // namespace hone::ir

#endif  // HONE_TESTS_COMMON_IR_INTERPRET_ELEMENT_H_
