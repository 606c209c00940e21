#ifndef HONE_TESTS_SERVER_RESEARCH_LAB_SMALL_SET_H_
#define HONE_TESTS_SERVER_RESEARCH_LAB_SMALL_SET_H_

#include "server/research/lab/recorded_set.h"

namespace hone::lab {

// Two design spaces of a small matmul with 144 candidates in total. The latencies are made up and
// smooth in the decisions; one candidate fails.
RecordedSet SmallSet();

}  // namespace hone::lab

#endif  // HONE_TESTS_SERVER_RESEARCH_LAB_SMALL_SET_H_
