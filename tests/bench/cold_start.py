"""Cold start: how long 200 networks take from their files to the first answer, in Hone, ONNX Runtime and OpenVINO.

  cold_start.py make DIR [--count 200 --seed 7]   writes the ONNX files: convolutional networks, perceptrons, attention blocks
  cold_start.py export DIR [--seconds S]          exports each with `hone export --draft`; continues where it stopped
  cold_start.py run DIR [--rounds 2 --seconds S]  measures, and keeps the results in DIR/results.json; continues where it stopped
  cold_start.py report DIR                        prints tables in Markdown, and fails if outputs differ

Needs numpy, onnx, onnxruntime and openvino from PyPI, and build/release/bin or $HONE_BIN_DIR. The exports are copied to DIR/second, which
stands for a second machine: only these files are used there. One process loads all networks of a system in turn and answers one
inference with each, and one process for each network does it with that alone. "cold": the files of the networks (not those of the
libraries) are not in the page cache. A process has --threads 2. The times of a network are from its file to its first output,
without the import of the libraries; the times of processes include it.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np

SYSTEMS = ("hone", "onnxruntime", "openvino", "openvino_cached")
TITLES = {"hone": "Hone", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "openvino_cached": "OpenVINO with its model cache"}
TOLERANCE = 1e-4
SINGLE = 20  # networks that are also loaded by processes of their own


class Model:
    """A network under construction. Every method adds nodes and returns the name of their result."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants = rng, [], []

    def constant(self, array):
        from onnx import numpy_helper
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def floats(self, *shape, fan):
        return self.constant((self.rng.standard_normal(shape) / math.sqrt(fan)).astype(np.float32))

    def op(self, kind, *inputs, **attributes):
        from onnx import helper
        self.nodes.append(helper.make_node(kind, list(inputs), [f"v{len(self.nodes)}"], name=f"n{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def dense(self, x, inputs, outputs):
        return self.op("Add", self.op("MatMul", x, self.floats(inputs, outputs, fan=inputs)), self.floats(outputs, fan=outputs))

    def conv(self, x, inputs, outputs, kernel, stride=1, groups=1):
        fan = inputs // groups * kernel * kernel
        pad = kernel // 2
        return self.op("Relu", self.op("Conv", x, self.floats(outputs, inputs // groups, kernel, kernel, fan=fan / 2),
                                       self.floats(outputs, fan=fan), kernel_shape=[kernel, kernel], strides=[stride, stride],
                                       pads=[pad] * 4, group=groups))

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)))

    def save(self, path, shape, result, result_shape):
        import onnx
        from onnx import TensorProto, helper
        graph = helper.make_graph(self.nodes, path.stem, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(result, TensorProto.FLOAT, result_shape)], self.constants)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def perceptron(path, rng):
    model, batch, width = Model(rng), int(rng.choice([1, 4, 8, 16])), int(rng.integers(4, 65)) * 8
    shape, x = [batch, width], "x"
    for _ in range(int(rng.integers(2, 6))):
        outputs = int(rng.integers(4, 97)) * 8
        x, width = model.op(str(rng.choice(["Relu", "Sigmoid", "Tanh"])), model.dense(x, width, outputs)), outputs
    model.save(path, shape, model.op("Softmax", model.dense(x, width, 10), axis=-1), [batch, 10])


def convolutions(path, rng):
    model, size, width = Model(rng), int(rng.choice([16, 24, 28, 32, 48, 56])), int(rng.integers(1, 5)) * 8
    shape, x = [1, 3, size, size], model.conv("x", 3, width, 3, stride=2)
    for _ in range(int(rng.integers(2, 6))):
        kind = rng.integers(3)
        if kind == 0:  # a residual block
            x = model.op("Add", x, model.conv(model.conv(x, width, width, 3), width, width, 3))
        elif kind == 1:  # depthwise, then pointwise
            outputs = int(rng.integers(1, 9)) * 8
            x, width = model.conv(model.conv(x, width, width, 3, groups=width), width, outputs, 1), outputs
        else:
            outputs = int(rng.integers(1, 9)) * 8
            x, width = model.conv(x, width, outputs, int(rng.choice([1, 3])), stride=int(rng.choice([1, 2]))), outputs
    x = model.reshape(model.op("GlobalAveragePool", x), 1, width)
    model.save(path, shape, model.dense(x, width, 10), [1, 10])


def attention(path, rng):
    model, length, heads = Model(rng), int(rng.integers(2, 17)) * 8, int(rng.choice([2, 4, 8]))
    part = int(rng.choice([16, 32]))
    width = heads * part
    shape, x = [1, length, width], "x"
    for _ in range(int(rng.integers(1, 3))):
        query, key, value = (model.op("Transpose", model.reshape(model.dense(x, width, width), 1, length, heads, part), perm=perm)
                             for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = model.op("Mul", model.op("MatMul", query, key), model.constant(np.float32(1 / math.sqrt(part))))
        mixed = model.op("Transpose", model.op("MatMul", model.op("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
        x = norm(model, model.op("Add", x, model.dense(model.reshape(mixed, 1, length, width), width, width)), width)
        x = norm(model, model.op("Add", x, model.dense(model.op("Relu", model.dense(x, width, 2 * width)), 2 * width, width)), width)
    model.save(path, shape, x, shape)


def norm(model, x, width):
    return model.op("LayerNormalization", x, model.constant(np.ones(width, np.float32)), model.constant(np.zeros(width, np.float32)))


def make(options):
    folder = options.dir / "models"
    folder.mkdir(parents=True, exist_ok=True)
    makers = (convolutions, perceptron, attention)
    for number in range(options.count):
        maker = makers[number % len(makers)]
        maker(folder / f"{maker.__name__}_{number:03}.onnx", np.random.default_rng([options.seed, number]))
    print(f"{options.count} networks, {sum(path.stat().st_size for path in folder.iterdir()) >> 20} MiB")


def models_of(folder):
    return sorted((folder / "models").glob("*.onnx"))


def export(options):
    """With a server of one store, which makes the drafts."""
    begin = time.monotonic()
    programs = pathlib.Path(os.environ.get("HONE_BIN_DIR", "build/release/bin"))
    second, ready = options.dir / "second", options.dir / "ready"
    second.mkdir(exist_ok=True)
    ready.unlink(missing_ok=True)
    address = f"unix:{options.dir}/server.sock"
    server = subprocess.Popen([programs / "hone-server", "--listen", address, "--store", options.dir / "store.db", "--ready-file", ready],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not ready.exists():
            if server.poll() is not None:
                sys.exit("hone-server ended at once")
            time.sleep(0.05)
        for model in models_of(options.dir):
            if (second / model.stem).exists():
                continue
            if time.monotonic() - begin > options.seconds:
                print(f"{len(list(second.iterdir()))} of {len(models_of(options.dir))} are exported; run it again")
                return
            scratch = options.dir / "exported" / model.stem
            shutil.rmtree(scratch, ignore_errors=True)
            subprocess.run([programs / "hone", "--server", address, "export", model, "--draft", "-o", scratch, "--name", model.stem],
                           check=True, stdout=subprocess.DEVNULL)
            shutil.copytree(scratch, second / model.stem)
        print("all are exported")
    finally:
        server.terminate()
        server.wait()


# What a process of its own does.

def some_input(shape):
    return np.random.default_rng(0).standard_normal([extent if isinstance(extent, int) else 1 for extent in shape]).astype(np.float32)


def opener(system, folder, threads):
    """Imports the system, and returns what opens a model: a function from its path to one from the input to the output."""
    if system == "hone":
        def open_hone(model):
            spec = importlib.util.spec_from_file_location(model.stem, folder / "second" / model.stem / f"{model.stem}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            network = module.Network(threads=threads)
            return network.inputs[0].shape, lambda x: network(x)[0]
        return open_hone
    if system == "onnxruntime":
        import onnxruntime

        def open_onnxruntime(model):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            return session.get_inputs()[0].shape, lambda x: session.run(None, {"x": x})[0]
        return open_onnxruntime
    import openvino
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if system == "openvino_cached":
        settings["CACHE_DIR"] = str(folder / "openvino_cache")

    def open_openvino(model):
        compiled = core.compile_model(str(model), "CPU", settings)
        request = compiled.create_infer_request()
        return tuple(compiled.inputs[0].shape), lambda x: request.infer({0: x})[compiled.outputs[0]]
    return open_openvino


def child(options):
    """Prints the seconds of each network as JSON: to the open network, from there to the first output, and of processors in all."""
    models = [options.dir / "models" / f"{options.only}.onnx"] if options.only else models_of(options.dir)
    open_model = opener(options.system, options.dir, options.threads)
    times, outputs, kept = {}, {}, []
    for model in models:
        begin, processors = time.perf_counter(), time.process_time()
        shape, run = open_model(model)
        opened, used = time.perf_counter(), time.process_time() - processors
        x = some_input(shape)
        asked, processors = time.perf_counter(), time.process_time()
        outputs[model.stem] = np.array(run(x))
        times[model.stem] = (opened - begin, time.perf_counter() - asked, used + time.process_time() - processors)
        kept.append(run)  # a server keeps its networks
    if options.outputs:
        np.savez(options.outputs, **outputs)
    print(json.dumps(times), flush=True)


# The measurements.

def files_of(system, folder):
    roots = {"hone": ["second"], "openvino_cached": ["models", "openvino_cache"]}.get(system, ["models"])
    return [path for root in roots for path in (folder / root).rglob("*") if path.is_file()]


def forget(paths):
    """Removes files from the page cache."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(options, system, only="", outputs=""):
    words = [sys.executable, __file__, "child", options.dir, "--system", system, "--threads", options.threads, "--only", only, "--outputs",
             outputs]
    cache = options.dir / "home"  # without private caches
    shutil.rmtree(cache, ignore_errors=True)
    environment = {"PATH": os.environ["PATH"], "HOME": cache, "XDG_CACHE_HOME": cache}
    begin = time.perf_counter()
    done = subprocess.run([str(word) for word in words], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {"process": time.perf_counter() - begin, "networks": json.loads(done.stdout.splitlines()[-1])}


def run(options):
    path, begin = options.dir / "results.json", time.monotonic()
    results = json.loads(path.read_text()) if path.exists() else {}
    singles = [model.stem for model in models_of(options.dir)][::max(1, len(models_of(options.dir)) // SINGLE)]
    for system in SYSTEMS:  # also fills the cache of OpenVINO
        if system not in results:
            measure(options, system, outputs=options.dir / f"{system}.npz")
            results[system] = {}
    for number in range(options.rounds):
        for system in SYSTEMS if number % 2 == 0 else SYSTEMS[::-1]:
            for state in ("cold", "warm"):
                for one in ["", *(singles if number == 0 else [])]:
                    key = f"{state} {number} {one}"
                    if key in results[system]:
                        continue
                    if time.monotonic() - begin > options.seconds:
                        print("not finished; run it again")
                        return
                    if state == "cold":
                        for compiled in (options.dir / "second").glob("*/__pycache__"):  # of Python, which a second machine has not yet
                            shutil.rmtree(compiled)
                        forget([file for file in files_of(system, options.dir) if one in str(file)])
                    results[system][key] = measure(options, system, one)
                    path.write_text(json.dumps(results))
    print("finished")


# The report.

def at(values, share):
    values = sorted(values)
    return values[round(share * (len(values) - 1))]


def report(options):
    results = json.loads((options.dir / "results.json").read_text())
    expected = np.load(options.dir / "onnxruntime.npz")
    count, worst = len(models_of(options.dir)), 0.0
    print("| files | system | open, median ms | first inference, median ms | both, median ms | p90 ms | processor time, median ms "
          f"| all {count}, s | process, s |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for state in ("cold", "warm"):
        for system in SYSTEMS:
            rounds = [one for key, one in results[system].items() if key.startswith(state) and not key.split(" ")[2]]
            networks = [[1e3 * part for part in parts] for one in rounds for parts in one["networks"].values()]
            both = [parts[0] + parts[1] for parts in networks]
            total = statistics.median(sum(sum(parts[:2]) for parts in one["networks"].values()) for one in rounds)
            print(f"| {state} | {TITLES[system]} | {at([parts[0] for parts in networks], 0.5):.2f} "
                  f"| {at([parts[1] for parts in networks], 0.5):.2f} | {at(both, 0.5):.2f} | {at(both, 0.9):.2f} "
                  f"| {at([parts[2] for parts in networks], 0.5):.2f} | {total:.2f} "
                  f"| {statistics.median(one['process'] for one in rounds):.2f} |")
    print("\n| files | system | processes | network, median ms | p90 ms | process, median ms | p90 ms |\n|---|---|--:|--:|--:|--:|--:|")
    for state in ("cold", "warm"):
        for system in SYSTEMS:
            alone = [one for key, one in results[system].items() if key.startswith(state) and key.split(" ")[2]]
            networks = [1e3 * sum(parts[:2]) for one in alone for parts in one["networks"].values()]
            processes = [1e3 * one["process"] for one in alone]
            print(f"| {state} | {TITLES[system]} | {len(alone)} | {at(networks, 0.5):.2f} | {at(networks, 0.9):.2f} "
                  f"| {at(processes, 0.5):.0f} | {at(processes, 0.9):.0f} |")
    for system in SYSTEMS:
        made = np.load(options.dir / f"{system}.npz")
        for name in expected.files:
            error = float(np.max(np.abs(made[name] - expected[name]))) / max(float(np.max(np.abs(expected[name]))), 1e-30)
            worst = max(worst, error)
            if not error <= TOLERANCE:
                print(f"{name}: {TITLES[system]} differs from ONNX Runtime by {error:.1e}", file=sys.stderr)
    print(f"\nThe largest difference from ONNX Runtime's outputs, relative to the largest element of an output, is {worst:.1e}.")
    return 0 if worst <= TOLERANCE else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "export", "run", "report", "child"])
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time, and continue with the next call")
    for name in ("--system", "--only", "--outputs"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return {"make": make, "export": export, "run": run, "report": report, "child": child}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
