#include "tests/bench/load/counts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone::load {
namespace {

using Json = nlohmann::json;
using Number = std::atomic<int64_t> Counts::*;

constexpr std::pair<const char*, Number> kNumbers[] = {
    {"finished", &Counts::finished},
    {"acknowledged", &Counts::acknowledged},
    {"cancelled", &Counts::cancelled},
    {"calls", &Counts::calls},
    {"failed_calls", &Counts::failed_calls},
    {"refusals", &Counts::refusals},
    {"uploads", &Counts::uploads},
    {"downloads", &Counts::downloads},
    {"failed_transfers", &Counts::failed_transfers},
};

}  // namespace

void Counts::Add(const Counts& other) {
  for (const auto& [name, number] : kNumbers) this->*number += (other.*number).load();
  acknowledge.Add(other.acknowledge);
}

std::string Counts::ToJson() const {
  Json json = {{"acknowledge", acknowledge.Encode()}};
  for (const auto& [name, number] : kNumbers) json[name] = (this->*number).load();
  return json.dump();
}

absl::Status Counts::AddJson(absl::string_view text, Counts* counts) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("not the counts of a load process: ", text));
  }
  for (const auto& [name, number] : kNumbers) counts->*number += json.value(name, int64_t{0});
  HONE_ASSIGN_OR_RETURN(const Spread spread,
                        Spread::Decode(json.value("acknowledge", std::string())));
  counts->acknowledge.Add(spread);
  return absl::OkStatus();
}

}  // namespace hone::load
