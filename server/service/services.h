#ifndef HONE_SERVER_SERVICE_SERVICES_H_
#define HONE_SERVER_SERVICE_SERVICES_H_

#include "server/service/best_service.h"
#include "server/service/fleet_service.h"
#include "server/service/handler.h"
#include "server/service/job_service.h"
#include "server/service/model_service.h"
#include "server/service/record_service.h"
#include "server/service/worker_service.h"

namespace hone::service {

// The handlers of all calls, which the listeners of a server share. Thread-safe.
struct Services {
  explicit Services(const Dependencies& dependencies) : deps(dependencies) {}
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  const Dependencies deps;
  JobService jobs{deps};
  BestService bests{deps};
  RecordService records{deps};
  ModelService models{deps};
  FleetService fleet{deps};
  WorkerService worker{deps};
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVICES_H_
