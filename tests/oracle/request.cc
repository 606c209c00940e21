#include "tests/oracle/request.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace hone::oracle {
namespace {

using nlohmann::json;

std::optional<Request::Source> SourceFromName(absl::string_view name) {
  if (name == "operator") return Request::Source::kOperator;
  if (name == "workload") return Request::Source::kWorkload;
  if (name == "trace") return Request::Source::kTrace;
  return std::nullopt;
}

// Throws exceptions of the JSON library if a value has another type.
absl::StatusOr<Request> FromObject(const json& object) {
  Request request;
  int sources = 0;
  for (const auto& [key, value] : object.items()) {
    if (const auto source = SourceFromName(key)) {
      request.source = *source;
      request.text = value.get<std::string>();
      ++sources;
    } else if (key == "folder") {
      request.folder = value.get<std::string>();
    } else if (key == "seed") {
      request.seed = value.get<uint64_t>();
    } else if (key == "candidates") {
      request.candidates = value.get<int>();
    } else if (key == "random_traces") {
      request.random_traces = value.get<int>();
    } else if (key == "threads") {
      request.threads = value.get<int>();
    } else if (key == "tolerance") {
      request.tolerance = value.get<double>();
    } else if (key == "target") {
      request.target = value.get<std::string>();
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown field '", key, "'"));
    }
  }
  if (sources != 1) {
    return absl::InvalidArgumentError("expected one of the fields operator, workload and trace");
  }
  return request;
}

}  // namespace

absl::StatusOr<Request> ParseRequest(absl::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("the request is not a JSON object");
  try {
    return FromObject(object);
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace hone::oracle
