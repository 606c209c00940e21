#include "tests/fault/customer.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace hone::fault {
namespace {

constexpr absl::Duration kAskInterval = absl::Milliseconds(300);

}  // namespace

Customer::Customer(std::string address, std::vector<std::vector<std::string>> shapes,
                   uint64_t first_seed, std::function<void(const v1::Job&)> on_resume)
    : address_(std::move(address)),
      shapes_(std::move(shapes)),
      on_resume_(std::move(on_resume)),
      seed_(first_seed) {}

std::string Customer::wish() const {
  return absl::StrCat(absl::StrJoin(shapes_[shape_ % shapes_.size()], " "), " (seed ", seed_, ", ",
                      what_, ")");
}

void Customer::Run(const std::string& what, std::vector<std::string> words) {
  what_ = what;
  words.insert(words.begin(), {"/usr/bin/setpriv", "--pdeathsig", "KILL",
                               absl::StrCat(integration::BinDir(), "/hone")});
  words.insert(words.end(), {"--server", address_});
  process_ = std::make_unique<integration::Process>(std::move(words));
}

void Customer::Step(client::Connection& direct, bool more) {
  if (process_ != nullptr) {
    if (process_->Running()) return;
    const int code = process_->Wait();
    if (code != 0) ++interrupted_;
    const bool said = !process_->Errors().empty() || !process_->Output().empty();
    if (code != 0 && code != 128 + SIGKILL && !said) {
      silent_.push_back(absl::StrCat(wish(), " ended with ", code));
    }
    process_.reset();
  }
  if (!wants_) {
    if (!more) return;
    ++shape_;
    ++seed_;
    wants_ = true;
  }
  if (absl::Now() < next_) return;
  next_ = absl::Now() + kAskInterval;
  Pursue(direct);
}

void Customer::Pursue(client::Connection& direct) {
  const auto jobs = direct.ListJobs(0);
  if (!jobs.ok()) return;
  for (const v1::Job& job : *jobs) {
    if (job.request().seed() != seed_) continue;
    if (job.state() == v1::JOB_STATE_DONE) {
      wants_ = false;
      ++done_;
    } else if (client::HasEnded(job.state())) {
      on_resume_(job);
      Run("resume", {"jobs", "resume", job.id()});
    } else {
      Run("watch", {"jobs", "watch", job.id()});
    }
    return;
  }
  std::vector<std::string> words = {"tune"};
  const auto& shape = shapes_[shape_ % shapes_.size()];
  words.insert(words.end(), shape.begin(), shape.end());
  words.insert(words.end(), {"--seed", absl::StrCat(seed_), "--json"});
  Run("tune", std::move(words));
}

}  // namespace hone::fault
