// Containers from files and pipes: artifacts, frames, saved models, modules for
// GPUs. The first byte selects the kind.
#include <fcntl.h>
#include <unistd.h>

#include "absl/time/time.h"
#include "common/record/artifact.h"
#include "common/record/framing.h"
#include "common/target/gpu_module.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/flat_forest.h"
#include "server/tuner/cost_model/model_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using hone::fuzz::Require;

void Artifact(absl::string_view bytes) {
  const auto artifact = hone::record::DecodeArtifact(bytes);
  if (!artifact.ok()) return;
  Require(hone::record::EncodeArtifact(*artifact) == bytes, "an artifact has one encoding");
}

void Frame(absl::string_view bytes) {
  int ends[2];
  // The bytes must fit into a pipe without a reader.
  if (bytes.size() > 32 << 10 || pipe2(ends, O_CLOEXEC) != 0) return;
  Require(write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "a pipe takes the bytes");
  close(ends[1]);
  size_t read = 0;
  while (true) {
    const auto message = hone::record::ReadFrame(ends[0], absl::InfiniteFuture());
    if (!message.ok()) break;
    read += message->size() + 4;
    Require(read <= bytes.size(), "no more is read than was written");
  }
  close(ends[0]);
}

void Model(absl::string_view bytes) {
  const hone::cost_model::ModelHeader expected{"random", 1, "statement", 0};
  const auto model = hone::cost_model::DecodeModel(bytes, expected);
  if (model.ok()) {
    Require(hone::cost_model::EncodeModel(model->header, model->payload) == bytes,
            "a model has one encoding");
  }
  // The digest keeps fuzzers out of the payload, so the payload is also parsed directly.
  hone::cost_model::ByteReader reader(bytes);
  const auto forest = hone::cost_model::FlatForest::Parse(reader);
  if (!forest.ok() || forest->columns() == 0) return;
  if (forest->columns() > 1024) return;
  const std::vector<float> row(forest->columns(), 0.5f);
  float score = 0;
  forest->Predict(row, absl::MakeSpan(&score, 1));
}

void GpuModule(absl::string_view bytes) {
  const auto module = hone::target::GpuModule::Decode(bytes);
  if (!module.ok()) return;
  const auto again = hone::target::GpuModule::Decode(module->Encode());
  Require(again.ok(), "an encoded module can be decoded");
  Require(again->Encode() == module->Encode(), "a module keeps its encoding");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes = hone::fuzz::TextOf(data + 1, size - 1);
  void (*const readers[])(absl::string_view) = {Artifact, Frame, Model, GpuModule};
  readers[data[0] % std::size(readers)](bytes);
  return 0;
}
