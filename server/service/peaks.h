#ifndef HONE_SERVER_SERVICE_PEAKS_H_
#define HONE_SERVER_SERVICE_PEAKS_H_

#include "hone/v1/tuning.pb.h"
#include "server/fleet/fleet.h"

// The workers of one target measure slightly different peaks. Shares of the peak can be compared
// only if they refer to the same one, so every answer has the largest peak that is known: that of
// the registered workers of the target, or the one that is stored with the job.
namespace hone::service {

// Sets the peaks of all results of a job.
void SetPeaks(const fleet::Fleet& fleet, v1::Job& job);
// Raises the peaks of a result to those of the registered workers.
void SetPeaks(const fleet::Fleet& fleet, v1::Best& best);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_PEAKS_H_
