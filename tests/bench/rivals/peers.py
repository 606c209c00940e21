"""A process of one library. rivals.py tells it on standard input what to load and when to run, so that libraries take turns.

Every library has a process of its own, because their runtimes of threads cannot all be in one. An answer is a line of JSON.
"""
import ctypes
import functools
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
from cases import Folder, convolution, is_operator, words_of
from turns import error_of, hone_network, turn


class Unsupported(Exception):
    """The library has no such operator, or the file that a comparison needs is missing."""


def aligned(array):
    """A copy that begins at a multiple of 64 bytes."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    result = memory[begin:begin + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def outputs_like(folder, case):
    """Memory for the outputs of a case."""
    with np.load(folder.expected(case)) as expected:
        return [aligned(np.zeros_like(expected[name])) for name in expected.files]


def constants_of(path):
    import onnx
    return [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer]


# Each loader takes the folder, the case and the number of threads, and returns a function that runs once and one that returns the outputs.

def load_hone(folder, case, threads):
    if not folder.export(case).is_dir():
        raise Unsupported("hone export refused it")
    network = hone_network(folder.export(case), threads)
    feed = folder.inputs(case)
    inputs = [aligned(feed[tensor.name]) for tensor in network.inputs]
    outputs = [aligned(np.zeros(tensor.shape, np.float32)) for tensor in network.outputs]
    addresses = [(ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays]) for arrays in (inputs, outputs)]
    call = functools.partial(network._weights.function("run"), network._instance, *addresses)  # the exported C function, into our memory

    def run():
        if call() != 0:
            raise RuntimeError("the network failed")

    keep = network, inputs
    return run, lambda: outputs if keep else None


def load_onnxruntime(folder, case, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(folder.model(case, channels_first=True), options, providers=["CPUExecutionProvider"])
    moves = folder.model(case, channels_first=True) != folder.model(case)
    binding, feed = session.io_binding(), folder.inputs(case)
    for tensor in session.get_inputs():
        array = feed[tensor.name]
        binding.bind_cpu_input(tensor.name, np.ascontiguousarray(array.transpose(0, 3, 1, 2)) if moves else array)
    for tensor in session.get_outputs():
        binding.bind_output(tensor.name)

    def outputs():
        arrays = binding.copy_outputs_to_cpu()
        return [array.transpose(0, 2, 3, 1) for array in arrays] if moves else arrays
    return lambda: session.run_with_iobinding(binding), outputs


def load_openvino(folder, case, threads):
    import openvino
    core, feed = openvino.Core(), folder.inputs(case)
    model = core.read_model(folder.model(case))
    model.reshape({name: array.shape for name, array in feed.items()})
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                 "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    inputs = {name: aligned(array) for name, array in feed.items()}
    for name, array in inputs.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run():
        request.start_async()
        request.wait()
    return run, lambda: [request.get_tensor(port).data.copy() for port in compiled.outputs] if inputs else None


def load_torch(folder, case, threads, compiles):
    import torch
    from torch_graph import module_of
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    try:
        module = module_of(folder.model(case))
    except KeyError as error:
        raise Unsupported(f"no operator {error}") from error
    if compiles:
        torch._inductor.config.freezing = True
        module = torch.compile(module, mode="max-autotune")
    inputs = [torch.from_numpy(array) for array in folder.inputs(case).values()]
    results = []

    def run():
        with torch.no_grad():
            results[:] = module(*inputs)
    return run, lambda: [result.contiguous().numpy() for result in results]


def load_openblas(folder, case, threads):
    import scipy_openblas64
    operator, keys = words_of(case)
    if operator not in ("matmul", "dense"):
        raise Unsupported("only matrix products")
    library = ctypes.CDLL(str(next(pathlib.Path(scipy_openblas64.get_lib_dir()).glob("libscipy_openblas*.so"))))
    library.scipy_openblas_set_num_threads64_(threads)
    arrays = [aligned(array) for array in folder.inputs(case).values()]
    arrays += [aligned(array) for array in (constants_of(folder.model(case)) if operator == "dense" else [])]
    result, = outputs_like(folder, case)
    size, one, zero = ctypes.c_int64, ctypes.c_float(1), ctypes.c_float(0)
    a, b, c = (ctypes.c_void_p(array.ctypes.data) for array in [*arrays, result])
    m, n, k = (size(keys[key]) for key in "mnk")
    arguments = [ctypes.c_int(101), ctypes.c_int(111), ctypes.c_int(111), m, n, k, one, a, k, b, n, zero, c, n]
    keep = arrays
    return lambda: library.scipy_cblas_sgemm64_(*arguments), lambda: [result] if keep else None


def onednn_library(folder):
    """Compiles onednn.cc for the oneDNN of this Python environment, once."""
    prefix, built = pathlib.Path(sys.prefix), folder.path / "onednn.so"
    if not (prefix / "include/oneapi/dnnl/dnnl.hpp").exists():
        raise Unsupported("no package onednn-devel is installed")
    source = pathlib.Path(__file__).with_name("onednn.cc")
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["c++", "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{prefix}/include", "-o", built, source, f"-L{prefix}/lib",
                        "-ldnnl"], check=True, stdout=sys.stderr)
    return ctypes.CDLL(str(built))


def load_onednn(folder, case, threads):
    del threads  # those of the process
    operator, keys = words_of(case)
    makers = {"matmul": 0, "dense": 0, "batch_matmul": 0, "conv2d": 1, "depthwise_conv2d": 1, "softmax": 2, "layer_norm": 3}
    if operator not in makers:
        raise Unsupported("no such operator")
    if makers[operator] == 0:
        sizes = [keys.get("b", 1), keys["m"], keys["n"], keys["k"], int(operator == "dense")]
    elif makers[operator] == 1:
        at = convolution(case)
        sizes = [at[key] for key in ("n", "h", "w", "ci", "co", "k", "s", "p", "groups")]
    else:
        sizes = [keys["m"], keys["n"]]
    constants = constants_of(folder.model(case)) if operator not in ("matmul", "batch_matmul") else []
    arrays = [aligned(array) for array in (*folder.inputs(case).values(), *constants)]
    results = outputs_like(folder, case)
    library = onednn_library(folder)
    library.rivals_onednn_make.restype = ctypes.c_void_p
    pointers = [array.ctypes.data for array in arrays + results]
    made = library.rivals_onednn_make(makers[operator], (ctypes.c_int64 * len(sizes))(*sizes), (ctypes.c_void_p * len(pointers))(*pointers))
    if not made:
        raise Unsupported("oneDNN refuses it")
    # Its calls are put on a queue of SYCL. Waiting for each of them would add 50 us to each.
    call = functools.partial(library.rivals_onednn_run, ctypes.c_void_p(made), CALLS["onednn"])
    keep = arrays
    return call, lambda: results if keep else None


PEERS = {
    "hone": load_hone,
    "onednn": load_onednn,
    "openblas": load_openblas,
    "onnxruntime": load_onnxruntime,
    "openvino": load_openvino,
    "inductor": functools.partial(load_torch, compiles=True),
    "torch": functools.partial(load_torch, compiles=False),
}
ONLY_OPERATORS = ("onednn", "openblas")
CALLS = {"onednn": 8}  # calls in a run; otherwise 1


def load(peer, folder, case, threads):
    if peer in ONLY_OPERATORS and not is_operator(case):
        raise Unsupported("only operators")
    run, outputs = PEERS[peer](folder, case, threads)
    for _ in range(3):  # PyTorch compiles in the first call
        run()
    error = 0.0
    if folder.expected(case).exists():
        with np.load(folder.expected(case)) as expected:
            error = error_of(outputs(), [expected[name] for name in expected.files])
    return run, outputs, error


def main():
    peer, threads, folder = sys.argv[1], int(sys.argv[2]), Folder(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print, too
    if threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    run, outputs = None, None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                run = outputs = None
                run, outputs, error = load(peer, folder, request["load"], threads)
                answer = {"error": error}
            elif "save" in request:
                np.savez(request["save"], *outputs())
                answer = {}
            else:
                clock = time.process_time if request["run"] == "processor" else time.perf_counter
                answer = {"seconds": turn(run, clock) / CALLS.get(peer, 1)}
        except Unsupported as reason:
            answer = {"unsupported": str(reason)}
        except Exception as reason:  # a library's failure is a result
            answer = {"failed": f"{type(reason).__name__}: {reason}"[:400]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
