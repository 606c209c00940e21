#ifndef HONE_SERVER_JOB_ACTOR_RECORD_POLICY_H_
#define HONE_SERVER_JOB_ACTOR_RECORD_POLICY_H_

#include <string>

#include "common/record/record.h"

namespace hone::job {

// Returns why a measurement cannot be trusted because the machine was disturbed; "" if it can be
// trusted. Untrusted records are stored but quarantined with this reason. They are told to the
// search of their own job, but nothing else learns from them, and they are not published.
//
// The limits are wide for screening, which only sorts, and strict for confirmations. They apply to
// the drift of the machine since its registration, stolen time, thermal throttling and, for
// confirmations, the dispersion of the samples and their median over the fastest. Load by other
// processes alone is not a reason, because its effects show in these values.
//
// `earlier_ns` is the steady latency of the same candidate in an earlier process; 0: unknown. A
// confirmation that is many times as slow was disturbed from its first sample to the last.
std::string WhyOutOfPolicy(const record::Record& record, double earlier_ns = 0);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_RECORD_POLICY_H_
