"""Language models against ONNX Runtime: greedy decoding must give the same tokens.

tests/bench/networks/make_decoders.py writes the models, and `hone export --draft` compiles them.
Exits with 77 if ONNX Runtime is not installed.
"""
import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench/networks"))

try:
    import onnxruntime

    import make_decoders
except ImportError as missing:
    print(f"decoders: skipped: {missing}; they need the packages onnx and onnxruntime")
    sys.exit(77)

_PROMPT, _LENGTH, _TOKENS = 8, 24, 14


def _exported(hone, path, folder, environment):
    """A function from inputs by name to the outputs in order."""
    name = path.stem
    subprocess.run([hone, "export", path, "--draft", "-o", folder / name, "--name", name], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(folder / name))
    network = importlib.import_module(name).Network(threads=2)
    return lambda feed: [np.array(output) for output in network(*(feed[each.name] for each in network.inputs))]


def _session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return lambda feed: session.run(None, {name: feed[name] for name in names})


def decode(run_prompt, run_token, size, prompt):
    """The tokens that follow a prompt, and the scores of each."""
    caches = [np.zeros((1, size.kv_heads, _LENGTH, size.head), np.float32) for _ in range(2 * size.layers)]
    tokens, chosen, all_scores = prompt, [], []
    run, before = run_prompt, 0
    while len(chosen) < _TOKENS:
        length = before + tokens.shape[1]
        feed = {"tokens": tokens, "place": np.array([before]), "last": np.array([length - 1], np.int32),
                "total": np.array([length], np.int32)}
        for number in range(size.layers):
            feed[f"past_k{number}"], feed[f"past_v{number}"] = caches[2 * number:2 * number + 2]
        scores, *caches = by_layer(run(feed))
        all_scores.append(scores.reshape(-1))
        chosen.append(int(np.argmax(scores)))
        tokens, run, before = np.array([[chosen[-1]]]), run_token, length
    return chosen, np.array(all_scores)


def by_layer(outputs):
    """The scores first, then the caches, whose outputs the models have before."""
    *caches, scores = outputs
    return [scores, *caches]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hone", required=True)
    hone = parser.parse_args().hone
    size = make_decoders.SIZES["tiny"]
    prompt = np.random.default_rng(5).integers(0, size.words, (1, _PROMPT))
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = dict(os.environ)
        for variable in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            environment[variable] = str(folder / variable)
            (folder / variable).mkdir(mode=0o700)
        paths = make_decoders.write(folder / "models", size, make_decoders.FORMS, _PROMPT, _LENGTH)
        for form, files in paths.items():
            expected, scores = decode(*(_session(path) for path in files), size, prompt)
            tokens, own_scores = decode(*(_exported(hone, path, folder, environment) for path in files), size, prompt)
            difference = np.abs(scores - own_scores).max() / np.abs(scores).max()
            print(f"decoders: {form}: {tokens}, scores differ by {difference:.1e} of the largest one")
            if tokens != expected or difference > 1e-4:
                print(f"decoders: {form}: ONNX Runtime decodes {expected}")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
