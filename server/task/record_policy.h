#ifndef HONE_SERVER_TASK_RECORD_POLICY_H_
#define HONE_SERVER_TASK_RECORD_POLICY_H_

#include <string>

#include "common/record/record.h"

namespace hone::task {

// Why a measurement does not say what it seems to: the machine was disturbed while it was taken.
// Such records are kept, quarantined with this reason: the search of their job is told of them, and
// nothing else is learnt from them or published of them. "" when it is as it should be.
//
// The limits, wide for screening, which only sorts, and strict for confirmations: drift of the
// machine against its registration, time that the host took away, a processor at its thermal limit,
// and for confirmations the dispersion of the samples. The load of others alone is no reason: what
// they disturb shows in these.
std::string WhyOutOfPolicy(const record::Record& record);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RECORD_POLICY_H_
