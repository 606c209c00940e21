#ifndef HONE_SERVER_SERVICE_PEAKS_H_
#define HONE_SERVER_SERVICE_PEAKS_H_

#include "hone/v1/tuning.pb.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/task_environment.h"

// The workers of one target measure slightly different peaks. Shares of the peak can be compared
// only if they refer to the same one, so every answer has the largest peak that is known: that of
// the registered workers of the target, the one that is stored with the job, or the rate of a
// kernel that is faster than these (job::LeastPeakOf). A result without a peak keeps none, because
// its workload has no known peak.
namespace hone::service {

// Sets the peaks of all results of a job.
void SetPeaks(const fleet::Fleet& fleet, v1::Job& job);
// Sets the peaks of a stored result of a workload.
void SetPeaks(const fleet::Fleet& fleet, const job::WorkloadInfo& workload, v1::Best& best);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_PEAKS_H_
