// Writes the corpora: run `fuzz_seeds tests/fuzz/corpus` in the source root. Texts come from the
// primitives' golden files, binary seeds from the encoders.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/npy.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/proto_convert.h"
#include "common/target/gpu_module.h"
#include "common/target/target.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "server/job/actor/job_codec.h"
#include "server/store/tables.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/flat_forest.h"
#include "server/tuner/cost_model/model_file.h"
#include "tests/fuzz/handlers_script.h"

namespace {

using namespace hone;
namespace fs = std::filesystem;

std::string root;

void Write(const std::string& target, const std::string& name, const std::string& bytes) {
  fs::create_directories(absl::StrCat(root, "/", target));
  std::ofstream(absl::StrCat(root, "/", target, "/", name), std::ios::binary) << bytes;
}

std::string Read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

constexpr char kWorkload[] =
    "workload dense\ninput A: f32[4, 6]\ninput W: f32[6, 5] constant\n"
    "C[i: 4, j: 5] = sum(k: 6) A[i, k] * W[k, j]\noutput D[i: 4, j: 5] = max(C[i, j], 0.0)\n";

void WriteTexts() {
  for (const auto& entry : fs::directory_iterator("tests/common/schedule/testdata")) {
    const std::string text = Read(entry.path()), name = entry.path().filename();
    const size_t trace = text.find("\ntrace 1\n") + 1, program = text.find("\nprogram\n") + 1;
    if (trace == 0 || program == 0) continue;
    Write("trace", name, text.substr(0, program));
    Write("program_text", name, text.substr(0, trace) + text.substr(program));
  }
  Write("workload_text", "dense", kWorkload);
  Write("workload_text", "conv2d",
        "workload conv\ninput X: f32[1, 6, 6, 8]\ninput W: f32[3, 3, 8, 16] constant\n"
        "output Y[n: 1, h: 6, w: 6, co: 16] = sum(r: 3, s: 3, ci: 8 where 0 <= h + r - 1 < 6,\n"
        "  0 <= w + s - 1 < 6) X[n, h + r - 1, w + s - 1, ci] * W[r, s, ci, co]\n");
  Write("workload_text", "tuple",
        "workload rows\ninput X: i32[3, 9]\n(V, I)[i: 3] = argmax(k: 9) (X[i, k], index(k))\n"
        "output Y[i: 3] = V[i] * 10 + i32(I[i])\n");
  Write("workload_text", "reshape",
        "workload r # a comment\ninput A: f16[4, 6]\nB[f: 24] = A[f / 6, f % 6] + f16(1.5)\n"
        "output C[j: 6, i: 4] = select(B[6*i + j] < 0.0, exp(f32(B[6*i + j])), 2.5e-3)\n");
  const char* const words[] = {"matmul m=512 n=512 k=64 dtype=bf16 acc=f32",
                               "conv2d n=1 h=14 w=14 ci=32 co=64 k=3 s=1 p=1 dil=1 groups=1",
                               "softmax m=64 n=1000",
                               "unix:/run/hone.sock",
                               "[::1]:7070",
                               "1h30m",
                               "0123456789abcdef0123456789abcdef"};
  for (size_t i = 0; i < std::size(words); ++i) Write("words", absl::StrCat("word", i), words[i]);
  Write("kernel_index", "matmul",
        "operator matmul dtype=f32 acc=@dtype\nkernel 0123456789abcdef\n"
        "name matmul acc=f32 dtype=f32 k=32 m=64 n=48\n"
        "workload 0123456789abcdef0123456789abcdef\ntarget key x86_64 avx avx2\n"
        "measured 0.001 1234.5 6e+20\ninput A f32 8192 64 32\nconstant B f32 6144 32 48\n"
        "output C f32 12288 64 48\n");
  Write("words", "target", target::TargetByName("x86-avx512")->ToText());
}

void WriteForeignLogs() {
  int number = 0;
  for (absl::string_view line :
       absl::StrSplit(Read("tests/integration/testdata/dataset_ansor.json"), '\n')) {
    if (!line.empty() && line[0] != '#')
      Write("foreign_log", absl::StrCat("ansor", number++), std::string(line));
  }
  Write("foreign_log", "ansor_gpu",
        R"({"i": [["[\"00a059b856ac30ac172b6252254479a6\", [2, 8], [12, 8], [2, 12], [2, 12]]", )"
        R"("cuda", [], "", 0]], [[], [["SP", 2, 1, 12, [2, 3], 1], ["CHW", 2, "local"], )"
        R"(["FSP", 3, 1, 0, 2], ["CHR", 1, "global", [3]], ["CA", 3, 4, 1], ["FU", 4, [0, 1]], )"
        R"(["SP", 2, 0, 12, [2], 1], ["FFSP", 2, 2, [0], 1, 1], ["AN", 4, 0, 5], ["CR", 2], )"
        R"(["PR", 3, 0, "auto_unroll_max_step$64"], ["SA", 2, 0, 8, 4], ["CI", 0]]]], )"
        R"("r": [[0.001, Infinity], 0, 0.3, 1607112214], "v": "v0.6"})");
  Write("foreign_log", "autotvm",
        R"({"input": ["llvm", "dense_nopack.x86", [["TENSOR", [8, 32], "float32"], )"
        R"(["TENSOR", [16, 32], "float32"], null, "float32"], {}], "config": {"index": 7, )"
        R"("entity": [["tile_y", "sp", [-1, 4]], ["unroll", "ot", true]]}, )"
        R"("result": [[0.001], 0, 1.5, 1607112214.25], "version": 0.2})");
  Write("foreign_log", "metaschedule",
        R"([1, [[[["GetBlock", [], ["C", "main"], ["b0"]], )"
        R"(["SamplePerfectTile", ["l1"], [4, 64], ["v0"]]], [[1, [2, 2, 4, 8]]]], [0.002], )"
        R"({"kind": "llvm"}, [["TENSOR", "float32", [8, 8]]]]])");
}

void WriteContainers() {
  record::Artifact artifact{.shared_object =
                                "\x7f"
                                "ELF and more",
                            .object =
                                "\x7f"
                                "ELF",
                            .workload = kWorkload,
                            .trace = "trace 1\n",
                            .program = "kernel main\n",
                            .target = "target"};
  Write("container", "artifact", absl::StrCat(std::string(1, 0), record::EncodeArtifact(artifact)));
  Write("container", "frames", std::string("\x01\x03\0\0\0abc\0\0\0\0\x02\0\0\0de", 1 + 7 + 4 + 6));
  cost_model::ByteWriter writer;
  cost_model::FlatForest::Create(
      {{{.left = {1, -1, -1}, .right = {2, -1, -1}, .feature = {1, 0, 0}, .value = {0.5f, 1, 2}}}},
      3)
      ->Serialize(writer);
  const std::string forest = std::move(writer).Finish();
  Write("container", "forest", absl::StrCat(std::string(1, 2), forest));
  Write("container", "model",
        absl::StrCat(std::string(1, 2),
                     cost_model::EncodeModel({"random", 1, "statement", 3}, forest)));
  const target::GpuModule module{
      .arguments = 3,
      .packed_bytes = 64,
      .launches = {{.kernel = "pack", .prepack = true},
                   {.kernel = "f", .grid = {8, 4, 1}, .block = {16, 16, 1}, .shared_bytes = 1024}},
      .code = "kernel void f() {}\n"};
  Write("container", "gpu_module", absl::StrCat(std::string(1, 3), module.Encode()));
  Write("decisions", "tiles", store::EncodeDecisions({8, 3, 2, 4, 16, 4, 2, 5}));
  Write("decisions", "samples", store::EncodeSamples({1.5, 2e6, -0.0}));
}

record::Record SomeRecord() {
  record::Record record;
  record.workload_digest = std::string(32, 'a');
  record.target = "x86_64";
  record.candidate = {.space_digest = std::string(32, 'b'), .decisions = {8, 4, -1, 1 << 20}};
  record.result.latency_ns = 1e6;
  record.result.samples_ns = {1e6, 1.1e6};
  record.result.detail = "three blocks";
  record.environment = {.cpu = "a cpu", .isa = "avx2", .cores = 2, .os = "an os"};
  return record;
}

void WriteMessages() {
  const record::Record record = SomeRecord();
  const auto put = [](char which, const char* name, const auto& message) {
    Write("record", name, absl::StrCat(std::string(1, which), message.SerializeAsString()));
  };
  put(0, "record", record::ToProto(record));
  put(1, "candidate", record::ToProto(record.candidate));
  put(2, "result", record::ToProto(record.result));
  put(3, "environment", record::ToProto(record.environment));
  put(4, "build_request",
      record::ToProto(record::BuildRequest{.workload = kWorkload,
                                           .space = "space",
                                           .decisions = {1, 2},
                                           .target = "target",
                                           .artifact_dir = "/tmp"}));
  put(5, "build_response",
      record::ToProto(record::BuildResponse{.artifact_digest = std::string(64, 'c')}));
  put(6, "run_request",
      record::ToProto(record::RunRequest{.workload = kWorkload,
                                         .workload_digest = std::string(32, 'a'),
                                         .artifact_path = "/tmp/a",
                                         .time_limit_ms = 1000}));
  v1::CreateJobRequest create;
  create.set_request_id("r1");
  create.set_workload(kWorkload);
  create.set_target("native");
  create.set_max_trials(8);
  create.set_tolerance(0.01);
  create.set_space(absl::StrCat(
      kWorkload, "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nparallel(l0)\n"));
  Write("request", "create_job", absl::StrCat(std::string(1, 0), create.SerializeAsString()));
  v1::SynchronizeRequest synchronize;
  synchronize.set_worker_id("w1");
  synchronize.set_epoch("e1");
  synchronize.set_free_build_slots(2);
  synchronize.set_free_run_slots(1);
  Write("request", "synchronize", absl::StrCat(std::string(1, 1), synchronize.SerializeAsString()));
  job::JobSpec spec;
  spec.workload = kWorkload;
  Write("stored_row", "spec", job::EncodeSpec(spec));
  Write("stored_row", "snapshot", job::EncodeSnapshot(job::JobSnapshot{}));
  job::ProposeEvent propose{.number = 3, .asked = 8};
  propose.proposals.push_back({record.candidate, 7});
  Write("stored_row", "propose", job::Encode("job", propose).payload);
  Write("stored_row", "external",
        job::Encode("job", job::ExternalEvent{5, "a", {record.candidate, 8}}).payload);
  Write("stored_row", "tell",
        job::Encode("job", job::TellEvent{4, {{.trial = 7, .latency_ns = 1e6}}}).payload);
  const std::string header = client::NpyHeader(ir::DType::kF32, {2, 3});
  Write("npy", "matrix", header + std::string(24, '\1'));
  Write("handlers", "tuning", fuzz::TuningScript(/*on_disk=*/false));
  Write("handlers", "tuning_on_disk", fuzz::TuningScript(/*on_disk=*/true));
  Write("handlers", "hostile", fuzz::HostileScript());
  Write("npy", "scalar", client::NpyHeader(ir::DType::kI8, {}) + "x");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER, in the source root\n", argv[0]);
    return 2;
  }
  root = argv[1];
  WriteTexts();
  WriteForeignLogs();
  WriteContainers();
  WriteMessages();
  return 0;
}
