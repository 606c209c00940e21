#ifndef HONE_SERVER_TUNER_SPACE_TRACE_STRUCTURE_H_
#define HONE_SERVER_TUNER_SPACE_TRACE_STRUCTURE_H_

#include <string>

#include "common/schedule/trace.h"

namespace hone::space {

// Returns the structure of a trace as text: its primitives in order, their input and output
// registers, and how many decisions each of them draws. Numbers and tensor names are left out, so
// traces that the same rule makes for different workloads can have equal structures. If they have,
// their decision vectors have the same length, and their numbers have the same meaning.
std::string StructureOf(const schedule::Trace& trace);

// Counts the positions at which both traces have the same instruction, including numbers and names.
// Among several traces with the same structure, this finds the one that is most like another trace.
int EqualInstructions(const schedule::Trace& a, const schedule::Trace& b);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_TRACE_STRUCTURE_H_
