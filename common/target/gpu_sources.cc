#include "common/target/gpu_sources.h"

#include <nlohmann/json.hpp>

namespace hone::target {

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
