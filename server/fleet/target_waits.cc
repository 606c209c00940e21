#include "server/fleet/target_waits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/seconds_text.h"

namespace hone::fleet {
namespace {

absl::Status ShuttingDown() { return absl::UnavailableError("the server is shutting down"); }

}  // namespace

void TargetWaits::Await(const std::string& key, absl::Time now, absl::Duration patience,
                        TargetDone done) {
  absl::StatusOr<TargetChoice> choice = ShuttingDown();
  if (!closed_) {
    choice = registry_.ChooseTarget(key);
    if (absl::IsUnavailable(choice.status())) {
      if (waits_.size() < most_) {
        waits_.emplace(key, Wait{now + patience, patience, std::move(done)});
        return;
      }
      choice = absl::ResourceExhaustedError(
          absl::StrCat(waits_.size(),
                       " jobs wait for a worker of their target, which is the limit of this "
                       "server; try again later"));
    }
  }
  deferred_.Add(std::move(done), std::move(choice));
}

void TargetWaits::Answer(const std::string& key) {
  AnswerKey(key);
  AnswerKey("");
}

void TargetWaits::AnswerKey(const std::string& key) {
  const auto [begin, end] = waits_.equal_range(key);
  if (begin == end) return;
  const absl::StatusOr<TargetChoice> choice = registry_.ChooseTarget(key);
  if (absl::IsUnavailable(choice.status())) return;
  for (auto it = begin; it != end; ++it) deferred_.Add(std::move(it->second.done), choice);
  waits_.erase(begin, end);
}

void TargetWaits::Expire(absl::Time now) {
  for (auto it = waits_.begin(); it != waits_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    const absl::Status missing = registry_.ChooseTarget(it->first).status();
    deferred_.Add(std::move(it->second.done),
                  absl::FailedPreconditionError(
                      absl::StrCat("the server waited ", SecondsText(it->second.patience),
                                   " for a worker: ", missing.message())));
    it = waits_.erase(it);
  }
}

void TargetWaits::Close() {
  closed_ = true;
  for (auto& [key, wait] : waits_) deferred_.Add(std::move(wait.done), ShuttingDown());
  waits_.clear();
}

}  // namespace hone::fleet
