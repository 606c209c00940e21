#ifndef HONE_SERVER_SPACE_TRACE_STRUCTURE_H_
#define HONE_SERVER_SPACE_TRACE_STRUCTURE_H_

#include <string>

#include "common/schedule/trace.h"

namespace hone::space {

// Returns the common structure of traces that the same rule makes for different workloads: the
// primitives in order, their input and output registers, and where decisions are drawn, without
// numbers or tensor names. Decision vectors of traces with equal structure have the same length,
// and their numbers have the same meaning.
std::string StructureOf(const schedule::Trace& trace);

// Counts the instructions that are identical in both, including numbers and names. Identifies a
// trace among several with the same structure.
int EqualInstructions(const schedule::Trace& a, const schedule::Trace& b);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_TRACE_STRUCTURE_H_
