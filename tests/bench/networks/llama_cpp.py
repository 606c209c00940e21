"""Decodes with the models of make_decoders.py in Hone, ONNX Runtime and llama.cpp, in turns.

  llama_cpp.py FOLDER --hone build/release/bin/hone [--size small] [--threads 2] [--rounds 9]

The models, their exports (drafts, or what was tuned) and a GGUF file with the same weights are written to FOLDER. With 4 bits, llama.cpp
has them as Q4_0, with one scale of 16 bits for 32 elements, and the last layer as Q8_0; it rounds activations to 8 bits. A row is a token
after half of the cache, or a prompt that is as long. Needs numpy, onnx, onnxruntime, gguf and llama-cpp-python, which is built from source:

  CMAKE_ARGS="-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF" pip install llama-cpp-python
"""
import argparse
import ctypes
import pathlib
import statistics
import subprocess
import time

import gguf
import llama_cpp
import make_decoders
import numpy as np
import onnxruntime
from turns import alternate, error_of, hone_network, ratio_text, turn

_FORMS = {"f32": "microsoft", "4 bits": "microsoft_4bit"}


def write_gguf(path, size, weights, bits):
    """`bits`: 32 or 4."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(size.width)
    writer.add_block_count(size.layers)
    writer.add_feed_forward_length(size.hidden)
    writer.add_head_count(size.heads)
    writer.add_head_count_kv(size.kv_heads)
    writer.add_rope_dimension_count(size.head)
    writer.add_layer_norm_rms_eps(make_decoders.EPSILON)
    writer.add_vocab_size(size.words)
    writer.add_tokenizer_model("no_vocab")
    kinds = gguf.GGMLQuantizationType

    def add(name, array, kind=kinds.F32):
        array = np.ascontiguousarray(array, np.float32)
        writer.add_tensor(f"{name}.weight", array if kind == kinds.F32 else gguf.quants.quantize(array, kind), raw_dtype=kind)

    def paired(matrix, heads):
        """llama.cpp rotates neighbouring elements, and the models the halves of a head."""
        return matrix.T.reshape(heads, 2, size.head // 2, size.width).swapaxes(1, 2).reshape(matrix.shape[1], size.width)

    inner, last = (kinds.F32, kinds.F32) if bits == 32 else (kinds.Q4_0, kinds.Q8_0)
    add("token_embd", weights.words)
    for number, layer in enumerate(weights.layers):
        block = f"blk.{number}"
        add(f"{block}.attn_norm", layer["norm"])
        add(f"{block}.attn_q", paired(layer["q"], size.heads), inner)
        add(f"{block}.attn_k", paired(layer["k"], size.kv_heads), inner)
        for name, source in (("attn_v", "v"), ("attn_output", "o"), ("ffn_gate", "gate"), ("ffn_up", "up"), ("ffn_down", "down")):
            add(f"{block}.{name}", layer[source].T, inner)
        add(f"{block}.ffn_norm", layer["norm2"])
    add("output_norm", weights.norm)
    add("output", weights.scores.T, last)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Llama:
    """A model in llama.cpp, whose cache has the tokens that were read."""

    def __init__(self, path, length, threads, words):
        llama_cpp.llama_backend_init()
        llama_cpp.llama_log_set(ctypes.cast(None, llama_cpp.llama_log_callback), ctypes.c_void_p())
        self.words = words
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = max(256, length)
        settings.n_threads = settings.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        self.batch = llama_cpp.llama_batch_init(length, 0, 1)

    def read(self, tokens, first):
        """The scores after these tokens, the first of which is at this place. Later places are forgotten."""
        llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(self.context), 0, first, -1)
        self.batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i], self.batch.seq_id[i][0] = int(token), first + i, 1, 0
            self.batch.logits[i] = i + 1 == len(tokens)
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama.cpp does not decode")
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, len(tokens) - 1), (self.words,))


def main():
    parser = argparse.ArgumentParser(description="Decoding in Hone, ONNX Runtime and llama.cpp, in turns.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--hone", required=True)
    parser.add_argument("--size", choices=make_decoders.SIZES, default="small")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    size, length = make_decoders.SIZES[given.size], 2 * given.prompt
    paths = make_decoders.write(given.folder, size, _FORMS.values(), given.prompt, length)
    weights = make_decoders.Weights(size)
    tokens = np.random.default_rng(5).integers(0, size.words, given.prompt)
    print("| weights | tokens | Hone ms | ONNX Runtime ms | llama.cpp ms | over ONNX Runtime | over llama.cpp | differences |\n" + "|---" * 8 + "|")
    for name, form in _FORMS.items():
        gguf_path = given.folder / f"{form}.gguf"
        write_gguf(gguf_path, size, weights, 4 if form.endswith("4bit") else 32)
        llama = Llama(gguf_path, length, given.threads, size.words)
        cache = [np.zeros((1, size.kv_heads, length, size.head), np.float32) for _ in range(2 * size.layers)]
        for path, read in zip(paths[form], (tokens, tokens[:1])):
            folder = given.folder / path.stem
            subprocess.run([given.hone, "export", path, "--draft", "-o", folder, "--name", path.stem, "--overwrite"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            network = hone_network(folder, given.threads)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = given.threads
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            first = 0 if len(read) > 1 else given.prompt
            feed = {"tokens": read[None], "last": np.int32([first + len(read) - 1]), "total": np.int32([first + len(read)])}
            feed |= {each.name: cache[2 * int(each.name[6:]) + (each.name[5] == "v")] for each in session.get_inputs()
                     if each.name.startswith("past_")}
            arrays = [feed[tensor.name] for tensor in network.inputs]
            runs = {"hone": lambda: network(*arrays), "onnxruntime": lambda: session.run(None, feed),
                    "llama": lambda: llama.read(read, first)}
            if first == 0:  # the caches of the token's row
                made = dict(zip((each.name for each in session.get_outputs()), runs["onnxruntime"]()))
                cache = [made[f"new_{kind}{number}"] for number in range(size.layers) for kind in "kv"]
            scores = next(i for i, tensor in enumerate(network.outputs) if tensor.name == "scores")
            expected = session.run(["scores"], feed)
            errors = [error_of([runs["hone"]()[scores]], expected), error_of([runs["llama"]()], expected)]
            times = alternate({key: lambda run=run: turn(run, time.perf_counter) for key, run in runs.items()}, given.rounds)
            ratios = [ratio_text([rival / own for rival, own in zip(times[key], times["hone"])]) for key in ("onnxruntime", "llama")]
            medians = " | ".join(f"{statistics.median(times[key]) * 1e3:.2f}" for key in runs)
            print(f"| {name} | {len(read)} | {medians} | {' | '.join(ratios)} | {errors[0]:.1e}, {errors[1]:.1e} |", flush=True)


if __name__ == "__main__":
    main()
