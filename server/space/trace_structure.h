#ifndef HONE_SERVER_SPACE_TRACE_STRUCTURE_H_
#define HONE_SERVER_SPACE_TRACE_STRUCTURE_H_

#include <string>

#include "common/schedule/trace.h"

namespace hone::space {

// What traces that the same rule made for two workloads have in common: the primitives in order,
// the registers that they take and give, and where decisions are drawn – no numbers, no names of
// tensors. Decision vectors of traces of one structure have the same length, and their numbers mean
// the same.
std::string StructureOf(const schedule::Trace& trace);

// Instructions that are the same in both, numbers and names too. Tells which of several traces of
// one structure is meant.
int EqualInstructions(const schedule::Trace& a, const schedule::Trace& b);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_TRACE_STRUCTURE_H_
