#include "client/cli/network/network_sizes.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/terminal.h"
#include "client/cli/size_list.h"
#include "client/connection/connection.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/samples.h"
#include "client/network/onnx/host_tail.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"
#include "common/target/host.h"

namespace hone::cli {
namespace {

// The most nodes in all imports that prove that values may be padded: about a minute of one core.
constexpr int64_t kMostComparedNodes = 1'000'000;
// An import of a model without nodes takes as long as that of this number of nodes.
constexpr int64_t kNodesOfImport = 100;
// A size is left out if padding to the next larger one takes less than this many times as long.
constexpr double kPaddingLoss = 1.05;
// Padding copies inputs and outputs with at least this rate.
constexpr double kCopiedBytesPerNs = 8;

absl::Status WrongSizes(absl::string_view word, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--shape ", word, ": ", what));
}

// A dimension with several values, as the place of its text.
struct VaryingExtent {
  size_t place = 0;           // in the shapes
  std::string before, after;  // the text around the values
  NamedSizes sizes;
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
      const absl::StatusOr<SizeList> list = ParseSizeList(extents[d]);
      if (!list.ok()) return WrongSizes(word, list.status().message());
      found.push_back({.place = place,
                       .before = word.substr(0, begin),
                       .after = word.substr(begin + extents[d].size()),
                       .sizes = {extents.size() == 1 ? name : absl::StrCat(name, "[", d, "]"),
                                 list->values, list->weights}});
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
  std::vector<NamedSizes> dimensions;
  for (const VaryingExtent& each : varying) dimensions.push_back(each.sizes);
  HONE_RETURN_IF_ERROR(CheckSizeCount(dimensions));
  NetworkSizes sizes{.words = words};
  sizes.list.push_back({.words = words});
  for (const VaryingExtent& each : varying) {
    std::vector<NetworkSize> longer;
    for (const NetworkSize& size : sizes.list) {
      for (size_t v = 0; v < each.sizes.values.size(); ++v) {
        const int64_t value = each.sizes.values[v];
        NetworkSize made = size;
        made.value = value;
        made.weight *= each.sizes.weights[v];
        absl::StrAppend(&made.label, made.label.empty() ? "" : ", ", each.sizes.name, "=", value);
        made.words.shapes[each.place] = absl::StrCat(each.before, value, each.after);
        longer.push_back(std::move(made));
      }
    }
    sizes.list = std::move(longer);
  }
  if (varying.size() == 1) {
    sizes.dimension = varying[0].sizes.name;
    sizes.place = varying[0].place;
    sizes.before = varying[0].before;
    sizes.after = varying[0].after;
  }
  return sizes;
}

namespace {

// The jobs among which those of a network are looked for.
constexpr int kNewestNetworkJobs = 100;

// The name of the first dimension of the inputs, if it is open; "" if it is not, has no name, or
// the model cannot be read.
std::string OpenDimensionOf(const std::string& path) {
  const absl::StatusOr<std::vector<onnx::DeclaredInput>> inputs = onnx::DeclaredInputs(path);
  if (!inputs.ok()) return "";
  std::string found;
  for (const onnx::DeclaredInput& input : *inputs) {
    if (!input.shape.has_value() || input.shape->empty()) continue;
    const auto* const name = std::get_if<std::string>(&input.shape->front());
    if (name == nullptr) continue;
    if (name->empty() || (!found.empty() && found != *name)) return "";
    found = *name;
  }
  return found;
}

// The values of a dimension that a job tuned: "1,4,8"; "" if it tuned no sizes of it.
std::string TunedValues(const v1::Job& job, const std::string& dimension) {
  std::vector<std::string> values;
  for (const v1::Network& network : job.request().network().networks()) {
    absl::string_view value = network.name();
    int64_t number = 0;
    if (!absl::ConsumePrefix(&value, absl::StrCat(dimension, "=")) ||
        !absl::SimpleAtoi(value, &number)) {
      return "";
    }
    values.push_back(absl::StrCat(number));
  }
  return values.size() < 2 ? "" : absl::StrJoin(values, ",");
}

}  // namespace

absl::StatusOr<NetworkSizes> ExpandKnownSizes(const Globals& globals, const NetworkWords& words,
                                              std::unique_ptr<Session>& session) {
  const std::string dimension = words.shapes.empty() ? OpenDimensionOf(words.path) : "";
  if (dimension.empty()) return ExpandSizes(words);
  HONE_ASSIGN_OR_RETURN(session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs,
                        session->connection().ListJobs(kNewestNetworkJobs));
  const std::string name = std::filesystem::path(words.path).stem().string();
  for (const v1::Job& job : jobs) {
    if (!job.has_network() || job.network().name() != name || job.target() != target) continue;
    const std::string values = TunedValues(job, dimension);
    if (values.empty()) continue;
    NetworkWords known = words;
    known.shapes = {absl::StrCat(dimension, "=", values)};
    PrintWrapped(stderr, absl::StrCat("dimension ", dimension, " is open; the sizes of job ",
                                      job.id(), " are used, as with --shape ", known.shapes[0]));
    return ExpandSizes(known);
  }
  return ExpandSizes(words);
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
      return WithExitCode(
          absl::Status(status.code(), absl::StrCat(size.label, ": ", status.message())),
          ExitCodeFor(status));
    }
    networks.push_back(*std::move(network));
  }
  return networks;
}

namespace {

// The imports that prove that values may be padded.
class PaddingProof {
 public:
  explicit PaddingProof(const NetworkSizes& sizes) : sizes_(sizes) {}

  // The inputs that must hide the padding if the values from `first` on are padded to this size.
  // FailedPrecondition: they may not be.
  absl::StatusOr<std::vector<graph::InputMask>> Check(const NetworkSize& size, int64_t first) {
    HONE_ASSIGN_OR_RETURN(const Import import, Read(size.words));
    const graph::Graph& graph = import.graph;
    const int64_t nodes =
        (size.value - first) * (kNodesOfImport + static_cast<int64_t>(graph.nodes.size()));
    if (compared_ + nodes > kMostComparedNodes) {
      return absl::FailedPreconditionError(absl::StrCat("there are too many values from ", first,
                                                        " to ", size.value, " to check each"));
    }
    compared_ += nodes;
    HONE_ASSIGN_OR_RETURN(const graph::SampleAxes axes, CompareAll(import, size.value, first));
    return graph::CheckSamplesAreIndependent(graph, size.value, axes);
  }

 private:
  struct Import {
    graph::Graph graph;
    std::string tail;  // what runs on the host, as a model; "": nothing
  };

  static absl::StatusOr<Import> Read(const NetworkWords& words) {
    Import import;
    std::shared_ptr<const onnx::HostTail> tail;
    HONE_ASSIGN_OR_RETURN(import.graph, ReadGraph(words, /*warns=*/false, &tail));
    if (tail != nullptr) {
      HONE_ASSIGN_OR_RETURN(import.tail, tail->ToModel(/*fixes_shapes=*/false));
    }
    return import;
  }

  absl::StatusOr<graph::SampleAxes> Compare(const Import& import, int64_t samples,
                                            int64_t value) const {
    HONE_ASSIGN_OR_RETURN(const Import other, Read(sizes_.WordsFor(value)));
    if (import.tail != other.tail) {
      return absl::FailedPreconditionError(
          "what runs on the host, or a constant that it reads, depends on the size");
    }
    return graph::CompareSamples(import.graph, samples, other.graph, value);
  }

  // Compares the graph with those of the smaller values, on all cores. The error is that of the
  // smallest value that has one.
  absl::StatusOr<graph::SampleAxes> CompareAll(const Import& import, int64_t samples,
                                               int64_t first) {
    std::atomic<int64_t> next = first;
    std::mutex mutex;
    int64_t last = samples - 1;  // of which the result counts
    absl::StatusOr<graph::SampleAxes> result = absl::UnknownError("not compared yet");
    const auto work = [&](bool shows) {
      for (int64_t value = next++; value < samples; value = next++) {
        if (shows) {
          progress_.Show(absl::StrCat("checking that ", sizes_.dimension, "=", value,
                                      " may be padded to ", samples));
        }
        absl::StatusOr<graph::SampleAxes> axes = Compare(import, samples, value);
        const std::lock_guard lock(mutex);
        if (value > last || (axes.ok() && value < last)) continue;
        if (!axes.ok()) next = samples;  // smaller values have begun
        last = value;
        result = std::move(axes);
      }
    };
    const int64_t threads = std::min<int64_t>(target::UsableCores(), samples - first);
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(work, /*shows=*/false);
    work(/*shows=*/true);
    for (std::thread& other : others) other.join();
    return result;
  }

  const NetworkSizes& sizes_;
  ProgressLine progress_;
  int64_t compared_ = 0;  // nodes
};

}  // namespace

Padding FindPadding(const NetworkSizes& sizes) {
  Padding padding;
  PaddingProof proof(sizes);
  int64_t previous = 0;
  for (const NetworkSize& size : sizes.list) {
    padding.masks.emplace_back();
    bool pads = size.value > 1;
    if (pads) {
      auto masks = proof.Check(size, std::max<int64_t>(previous, 1));
      pads = masks.ok();
      if (pads) padding.masks.back() = *std::move(masks);
      if (!pads && previous + 1 < size.value && padding.why_not.empty()) {
        padding.why_not = std::string(masks.status().message());
      }
    }
    padding.pads.push_back(pads);
    previous = size.value;
  }
  return padding;
}

double PaddingCopiesNs(const graph::Graph& graph, const graph::Graph& other) {
  int64_t bytes = 0;
  const auto add = [&](const std::vector<graph::ValueId>& ends,
                       const std::vector<graph::ValueId>& other_ends) {
    for (size_t i = 0; i < ends.size(); ++i) {
      const graph::TensorType& type = graph.value(ends[i]).type;
      if (type.shape != other.value(other_ends[i]).type.shape) bytes += type.bytes();
    }
  };
  add(graph.inputs, other.inputs);
  add(graph.outputs, other.outputs);
  return static_cast<double>(bytes) / kCopiedBytesPerNs;
}

std::vector<size_t> KeptSizes(absl::Span<const double> latencies_ns,
                              absl::Span<const double> copies_ns, const Padding& padding) {
  std::vector<size_t> kept = {latencies_ns.size() - 1};
  for (size_t k = latencies_ns.size() - 1; k-- > 0;) {
    const size_t next = kept.back();
    // The values below it were only compared with it.
    const bool may_be_padded =
        padding.pads[k] && padding.pads[next] && padding.masks[k] == padding.masks[next];
    const bool is_close = latencies_ns[next] + copies_ns[next] < kPaddingLoss * latencies_ns[k];
    if (k > 0 && may_be_padded && is_close) continue;
    kept.push_back(k);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace hone::cli
