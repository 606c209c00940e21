#include "client/cli/network/network_sizes.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/samples.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr absl::string_view kRangeDots = "..";
// The most nodes in all imports that prove that values may be padded, which takes some seconds.
constexpr int64_t kMostComparedNodes = 100'000;

absl::Status WrongSizes(absl::string_view word, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--shape ", word, ": ", what));
}

absl::StatusOr<int64_t> ParseSize(absl::string_view word, absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 1) {
    return WrongSizes(word, absl::StrCat("'", text,
                                         "' is not a positive number; a size is given as in "
                                         "batch=1,4,8 or batch=1..64"));
  }
  return value;
}

// The values of "1,4,8", "1..512" or a combination, ascending.
absl::StatusOr<std::vector<int64_t>> ParseSizes(absl::string_view word, absl::string_view text) {
  std::set<int64_t> values;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const size_t dots = item.find(kRangeDots);
    if (dots == absl::string_view::npos) {
      HONE_ASSIGN_OR_RETURN(const int64_t value, ParseSize(word, item));
      values.insert(value);
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const int64_t first, ParseSize(word, item.substr(0, dots)));
    HONE_ASSIGN_OR_RETURN(const int64_t last,
                          ParseSize(word, item.substr(dots + kRangeDots.size())));
    if (first > last) {
      return WrongSizes(word, absl::StrCat("the range ", item,
                                           " is empty; give the smaller value "
                                           "first"));
    }
    values.insert({first, last});
    for (int64_t power = 1; power < last; power *= 2) {
      if (power > first) values.insert(power);
      if (power > std::numeric_limits<int64_t>::max() / 2) break;
    }
  }
  return std::vector<int64_t>(values.begin(), values.end());
}

// A dimension with several values, as the place of its text.
struct VaryingExtent {
  size_t place = 0;  // in the shapes
  std::string name;
  std::string before, after;  // the text around the values
  std::vector<int64_t> values;
};

// Finds the extents of a shape that have several values. A shape of one extent has its name, others
// that of the input and the number of the dimension.
absl::Status FindVarying(const std::string& word, size_t place, std::vector<VaryingExtent>& found) {
  const size_t equals = word.rfind('=');
  if (equals == std::string::npos) return absl::OkStatus();  // ReadGraph refuses it
  const std::string name = word.substr(0, equals);
  size_t begin = equals + 1;
  const std::vector<std::string> extents = absl::StrSplit(word.substr(begin), 'x');
  for (size_t d = 0; d < extents.size(); ++d) {
    if (NamesSeveralSizes(extents[d])) {
      HONE_ASSIGN_OR_RETURN(std::vector<int64_t> values, ParseSizes(word, extents[d]));
      found.push_back({.place = place,
                       .name = extents.size() == 1 ? name : absl::StrCat(name, "[", d, "]"),
                       .before = word.substr(0, begin),
                       .after = word.substr(begin + extents[d].size()),
                       .values = std::move(values)});
    }
    begin += extents[d].size() + 1;
  }
  return absl::OkStatus();
}

}  // namespace

NetworkWords NetworkSizes::WordsFor(int64_t value) const {
  NetworkWords made = words;
  made.shapes[place] = absl::StrCat(before, value, after);
  return made;
}

bool NamesSeveralSizes(absl::string_view shape) {
  return absl::StrContains(shape, ',') || absl::StrContains(shape, kRangeDots);
}

absl::StatusOr<NetworkSizes> ExpandSizes(const NetworkWords& words) {
  std::vector<VaryingExtent> varying;
  for (size_t i = 0; i < words.shapes.size(); ++i) {
    HONE_RETURN_IF_ERROR(FindVarying(words.shapes[i], i, varying));
  }
  for (size_t i = 0; i + 1 < varying.size(); ++i) {
    if (varying[i].place != varying[i + 1].place) continue;
    return WrongSizes(words.shapes[varying[i].place],
                      "only one dimension of an input can have several sizes");
  }
  size_t count = 1;
  for (const VaryingExtent& each : varying) count *= std::min(each.values.size(), kMostSizes + 1);
  if (count > kMostSizes) {
    const std::string what =
        absl::StrJoin(varying, " times ", [](std::string* text, const VaryingExtent& each) {
          absl::StrAppend(text, each.values.size(), " values of ", each.name);
        });
    return absl::InvalidArgumentError(
        absl::StrCat("--shape gives ", what, ", and at most ", kMostSizes,
                     varying.size() > 1 ? " combinations" : " sizes",
                     " can be tuned together; give fewer values, as in ", varying[0].name, "=",
                     varying[0].values.front(), ",", varying[0].values.back()));
  }
  NetworkSizes sizes{.words = words};
  sizes.list.push_back({.words = words});
  for (const VaryingExtent& each : varying) {
    std::vector<NetworkSize> longer;
    for (const NetworkSize& size : sizes.list) {
      for (const int64_t value : each.values) {
        NetworkSize made = size;
        made.value = value;
        absl::StrAppend(&made.label, made.label.empty() ? "" : ", ", each.name, "=", value);
        made.words.shapes[each.place] = absl::StrCat(each.before, value, each.after);
        longer.push_back(std::move(made));
      }
    }
    sizes.list = std::move(longer);
  }
  if (varying.size() == 1) {
    sizes.dimension = varying[0].name;
    sizes.place = varying[0].place;
    sizes.before = varying[0].before;
    sizes.after = varying[0].after;
  }
  return sizes;
}

absl::StatusOr<std::vector<NetworkArgument>> ReadNetworks(const Globals& globals,
                                                          const NetworkSizes& sizes) {
  std::vector<NetworkArgument> networks;
  for (const NetworkSize& size : sizes.list) {
    absl::StatusOr<NetworkArgument> network =
        ReadNetwork(globals, size.words, /*warns=*/networks.empty());
    if (!network.ok()) {
      absl::Status status = network.status();
      if (!sizes.AreSeveral()) return status;
      return absl::Status(status.code(), absl::StrCat(size.label, ": ", status.message()));
    }
    networks.push_back(*std::move(network));
  }
  return networks;
}

namespace {

// Whether the values after `previous` may be padded to this size.
absl::Status CheckPadding(const NetworkSizes& sizes, const NetworkSize& size, int64_t previous,
                          const NetworkArgument& network, int64_t& compared) {
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph, ReadGraph(size.words, /*warns=*/false));
  graph::SampleAxes axes;
  for (int64_t value = previous + 1; value < size.value; ++value) {
    compared += static_cast<int64_t>(graph.nodes.size());
    if (compared > kMostComparedNodes) {
      return absl::FailedPreconditionError(absl::StrCat(
          "there are too many values between ", previous, " and ", size.value, " to check each"));
    }
    HONE_ASSIGN_OR_RETURN(const graph::Graph other,
                          ReadGraph(sizes.WordsFor(value), /*warns=*/false));
    HONE_ASSIGN_OR_RETURN(axes, graph::CompareSamples(graph, size.value, other, value));
  }
  return graph::CheckSamplesAreIndependent(network.graph, network.partition, size.value, axes);
}

}  // namespace

Padding FindPadding(const NetworkSizes& sizes, absl::Span<const NetworkArgument> networks) {
  Padding padding;
  int64_t previous = 0, compared = 0;
  for (size_t k = 0; k < sizes.list.size(); ++k) {
    const NetworkSize& size = sizes.list[k];
    bool pads = previous + 1 < size.value;
    if (pads) {
      const absl::Status status = CheckPadding(sizes, size, previous, networks[k], compared);
      pads = status.ok();
      if (!pads && padding.why_not.empty()) padding.why_not = std::string(status.message());
    }
    padding.pads.push_back(pads);
    previous = size.value;
  }
  return padding;
}

}  // namespace hone::cli
