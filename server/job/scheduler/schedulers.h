#ifndef HONE_SERVER_JOB_SCHEDULER_SCHEDULERS_H_
#define HONE_SERVER_JOB_SCHEDULER_SCHEDULERS_H_

#include <memory>

#include "server/job/scheduler/task_scheduler.h"

// The schedulers of the registry. Each is implemented in <name>.cc.
namespace hone::job {

// The baseline: selects the task that has had the fewest trials in this job.
std::unique_ptr<TaskScheduler> MakeRoundRobinScheduler(SchedulerOptions options);

// Ansor's gradient descent (Zheng et al., OSDI 2020, section 6), with the constants of its code.
// With t_i batches of task i and its latency g_i, selects the task with the smallest
//   ∂f/∂g_i · [ α·(g_i(t_i) − g_i(t_i − Δt)) / Δt
//              + (1 − α)·(min(g_i − g_i/t_i, β·C_i / max V_k) − g_i) ],
// where C_i is the number of operations and V_k the operations per time of a similar task: one of
// the same operator with the same ⌊log_1.618(C + 1)⌋. The second bound needs a similar task.
// Batches in flight and the trials of earlier jobs count in t_i. With probability 5 %, selects
// a random task.
std::unique_ptr<TaskScheduler> MakeGradientScheduler(SchedulerOptions options);

// Selects the task with the largest expected decrease of the objective per second. The decrease is
// that of the model in improvement.h; the seconds are those of the task's trials so far.
std::unique_ptr<TaskScheduler> MakeExpectedGainScheduler(SchedulerOptions options);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SCHEDULER_SCHEDULERS_H_
