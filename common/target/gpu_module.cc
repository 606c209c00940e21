#include "common/target/gpu_module.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hone::target {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kMagic = "HONEGPU1\n";
constexpr int kVersion = 1;
constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr int64_t kMaxGrid = int64_t{1} << 31;
constexpr int64_t kMaxThreads = 1 << 16;
constexpr size_t kMaxLaunches = 1024;
constexpr int kMaxArguments = 4096;

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("GPU module: ", why));
}

// Reads members of one JSON object and keeps the first error.
class Reader {
 public:
  Reader(const Json& object, absl::Status& status) : object_(object), status_(status) {}

  int64_t Number(const char* key, int64_t min, int64_t max) {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_number_integer()) return Fail(key, min);
    return Checked(key, *found, min, max);
  }
  std::array<int64_t, 3> Sizes(const char* key, int64_t max) {
    std::array<int64_t, 3> sizes = {1, 1, 1};
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_array() || found->size() != sizes.size()) {
      Fail(key, 1);
      return sizes;
    }
    for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = Checked(key, (*found)[d], 1, max);
    return sizes;
  }
  std::string Text(const char* key) {
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_string()) return found->get<std::string>();
    Fail(key, 0);
    return "";
  }
  bool Flag(const char* key) {
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_boolean()) return found->get<bool>();
    return Fail(key, 0) != 0;
  }

 private:
  int64_t Checked(const char* key, const Json& value, int64_t min, int64_t max) {
    if (!value.is_number_integer()) return Fail(key, min);
    const auto number = value.get<int64_t>();
    return number >= min && number <= max ? number : Fail(key, min);
  }
  int64_t Fail(const char* key, int64_t value) {
    status_.Update(Refuse(absl::StrCat("\"", key, "\" is missing or out of range")));
    return value;
  }

  const Json& object_;
  absl::Status& status_;
};

}  // namespace

std::string GpuModule::LaunchesAsJson() const {
  Json all = {{"version", kVersion},
              {"kind", std::string(KindName(kind))},
              {"arguments", arguments},
              {"packed_bytes", packed_bytes},
              {"workspace_bytes", workspace_bytes},
              {"launches", Json::array()}};
  for (const GpuLaunch& launch : launches) {
    all["launches"].push_back({{"kernel", launch.kernel},
                               {"prepack", launch.prepack},
                               {"grid", launch.grid},
                               {"block", launch.block},
                               {"shared_bytes", launch.shared_bytes}});
  }
  return all.dump();
}

std::string GpuModule::Encode() const { return absl::StrCat(kMagic, LaunchesAsJson(), "\n", code); }

absl::StatusOr<GpuModule> GpuModule::Decode(absl::string_view bytes) {
  if (!absl::ConsumePrefix(&bytes, kMagic)) return Refuse("it does not begin with HONEGPU1");
  const size_t end = bytes.find('\n');
  if (end == absl::string_view::npos)
    return Refuse("the description of its launches is not terminated");
  const Json json = Json::parse(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(end),
                                /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Refuse("the description of its launches is not a JSON object");
  absl::Status status;
  Reader reader(json, status);
  GpuModule module;
  if (reader.Number("version", 0, 1 << 30) != kVersion) return Refuse("it has a different version");
  const std::string kind = reader.Text("kind");
  if (kind == KindName(Kind::kCuda)) {
    module.kind = Kind::kCuda;
  } else if (kind != KindName(Kind::kOpenCl)) {
    return Refuse("the kind is not opencl or cuda");
  }
  module.arguments = static_cast<int>(reader.Number("arguments", 1, kMaxArguments));
  module.packed_bytes = reader.Number("packed_bytes", 0, kMaxBytes);
  module.workspace_bytes = reader.Number("workspace_bytes", 0, kMaxBytes);
  const auto launches = json.find("launches");
  if (launches == json.end() || !launches->is_array() || launches->empty() ||
      launches->size() > kMaxLaunches) {
    return Refuse("the list of launches is missing, empty or too long");
  }
  for (const Json& one : *launches) {
    if (!one.is_object()) return Refuse("a launch is not a JSON object");
    Reader fields(one, status);
    GpuLaunch& launch = module.launches.emplace_back();
    launch.kernel = fields.Text("kernel");
    launch.prepack = fields.Flag("prepack");
    launch.grid = fields.Sizes("grid", kMaxGrid);
    launch.block = fields.Sizes("block", kMaxThreads);
    launch.shared_bytes = fields.Number("shared_bytes", 0, kMaxBytes);
  }
  if (!status.ok()) return status;
  module.code = std::string(bytes.substr(end + 1));
  return module;
}

std::string GpuSources::Encode() const {
  const nlohmann::ordered_json json = {{"source", source}, {"assembly", assembly}};
  return json.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true,
                   nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<GpuSources> GpuSources::Decode(absl::string_view bytes) {
  const auto json = nlohmann::json::parse(bytes.begin(), bytes.end(), /*cb=*/nullptr,
                                          /*allow_exceptions=*/false);
  const auto text = [&](const char* key) -> const std::string* {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found == json.end() ? nullptr : found->get_ptr<const std::string*>();
  };
  const std::string* const source = text("source");
  const std::string* const assembly = text("assembly");
  if (source != nullptr && assembly != nullptr) return GpuSources{*source, *assembly};
  return absl::InvalidArgumentError(
      "this is not a JSON object with the source and assembly of GPU kernels");
}

}  // namespace hone::target
