// What a server learns from all tasks of a target reaches the next job.
#include "server/job/search/learned_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/job/actor/compiler_environment.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/model_file.h"
#include "tests/manual_store.h"
#include "tests/status.h"

namespace hone::job {
namespace {}  // namespace
}  // namespace hone::job
