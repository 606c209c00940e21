"""Kernels for CUDA on arrays of a GPU: on the driver of tests/fakes/cuda/libraries, whose memory is that of the process, with
arrays that have only DLPack's interface and with a stand-in of CuPy; on a real GPU, with PyTorch and CuPy."""

import ctypes
import gc
import sys
import types

import numpy
import pytest

import hone
from hone import _programs

MATMUL = "matmul m=32 n=48 k=16"
CONSTANT = ("workload packed\ninput A: f32[8, 16]\ninput W: f32[16, 32] constant\n"
            "output C[i: 8, j: 32] = sum(k: 16) A[i, k] * W[k, j]\n")


def is_fake():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    name = ctypes.create_string_buffer(256)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetName(name, 255, 0) != 0:
        return None
    return name.value == b"Emulated GPU"


if is_fake() is None:
    pytest.skip("there is no GPU of NVIDIA", allow_module_level=True)
only_fake = pytest.mark.skipif(is_fake() is False, reason="this GPU is real")
only_real = pytest.mark.skipif(is_fake() is True, reason="this GPU is emulated")


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class OnGpu:
    """An array in memory of the driver, with DLPack's interface."""

    def __init__(self, array, device=0, kind=2, offset=0):
        array = numpy.asarray(array)
        self.device, self.kind = device, kind
        self.streams = []  # what __dlpack__ was told
        driver, context, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        driver.cuCtxPushCurrent_v2(context)
        assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(array.nbytes + 256)) == 0
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        self.pointer = pointer.value + offset
        bytes_ = (ctypes.c_char * array.nbytes).from_address(self.pointer)
        self.host = numpy.frombuffer(bytes_, array.dtype).reshape(array.shape)
        self.host[...] = array
        self.strides = None

    def __dlpack_device__(self):
        return self.kind, self.device

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        dtype = self.host.dtype
        code = {"f": 2, "i": 0, "u": 1, "b": 6}[dtype.kind]
        self._shape = (ctypes.c_int64 * self.host.ndim)(*self.host.shape)
        strides = None if self.strides is None else (ctypes.c_int64 * self.host.ndim)(*self.strides)
        self._view = _Tensor(self.pointer, self.kind, self.device, self.host.ndim, code, 8 * dtype.itemsize, 1,
                             self._shape, strides, 0, None, None)
        return _new_capsule(ctypes.addressof(self._view), b"dltensor", None)


def random(*shape):
    return numpy.random.default_rng(0).standard_normal(shape).astype("float32")


@pytest.fixture(scope="module")
def matmul(client):
    return client.tune(MATMUL, trials=4, target="cuda", progress=False)


@only_fake
def test_a_kernel_runs_on_arrays_of_the_gpu(client, matmul):
    assert isinstance(matmul, hone.CudaKernel) and matmul.best.target.startswith("nvptx64-")
    A, B, C = OnGpu(random(32, 16)), OnGpu(random(16, 48)), OnGpu(numpy.zeros((32, 48), "float32"))
    assert matmul(A, B, out=C) is C
    numpy.testing.assert_allclose(C.host, A.host @ B.host, rtol=1e-4, atol=1e-5)
    # The default stream, which DLPack calls 1.
    assert A.streams == B.streams == C.streams == [1]
    again = client.load(MATMUL, target="cuda")
    B.host[...] *= 2
    again(A, B, out=[C])
    numpy.testing.assert_allclose(C.host, A.host @ B.host, rtol=1e-4, atol=1e-5)
    B.host[...] *= 2
    matmul.with_constants()(A, B, out=C)  # it has none
    numpy.testing.assert_allclose(C.host, A.host @ B.host, rtol=1e-4, atol=1e-5)
    with pytest.raises(hone.NothingKnown):
        client.load(MATMUL)  # it was not tuned for the CPU


class CuPy(types.ModuleType):
    """The part of CuPy that is used: arrays, devices and streams."""

    class ndarray(OnGpu):
        pass

    ndarray.__module__ = "cupy"

    class Device:
        current = 0

        def __init__(self, number):
            self.number = number

        def __enter__(self):
            self.previous, CuPy.Device.current = CuPy.Device.current, self.number

        def __exit__(self, *_):
            CuPy.Device.current = self.previous

    def __init__(self, stream):
        super().__init__("cupy")
        self.cuda = types.SimpleNamespace(
            Device=CuPy.Device, get_current_stream=lambda: types.SimpleNamespace(ptr=stream if CuPy.Device.current == 0 else 0))

    @staticmethod
    def empty(shape, dtype):
        return CuPy.ndarray(numpy.empty(shape, dtype), CuPy.Device.current)


@only_fake
def test_outputs_are_arrays_of_the_library_and_on_its_stream(matmul, monkeypatch):
    driver, stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    monkeypatch.setitem(sys.modules, "cupy", CuPy(stream.value))
    A, B = CuPy.ndarray(random(32, 16)), CuPy.ndarray(random(16, 48))
    # A stream that is captured runs nothing before its graph does.
    assert driver.cuStreamBeginCapture_v2(stream, 1) == 0
    C = matmul(A, B)
    assert type(C) is CuPy.ndarray and A.streams == [stream.value]
    C.host[...] = 0
    graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0 and (C.host == 0).all()
    assert driver.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_ulonglong(0)) == 0
    assert driver.cuGraphLaunch(ready, stream) == 0
    numpy.testing.assert_allclose(C.host, A.host @ B.host, rtol=1e-4, atol=1e-5)
    # The default stream of CuPy is 0, which DLPack does not allow as a number.
    monkeypatch.setitem(sys.modules, "cupy", CuPy(0))
    numpy.testing.assert_allclose(matmul(A, B).host, A.host @ B.host, rtol=1e-4, atol=1e-5)
    assert A.streams[-1] == 1
    D = OnGpu(numpy.zeros((32, 48), "float32"))
    matmul(OnGpu(A.host), OnGpu(B.host), out=D, stream=stream.value)
    assert D.streams == [stream.value]


@only_fake
@pytest.mark.parametrize("value, part", [
    (random(32, 16), "is in the memory of the CPU, but the kernel runs on a GPU of NVIDIA; copy it there, as with cupy.asarray"),
    ([[1.0] * 16] * 32, "is a list; give an array of CuPy"),
    (lambda: OnGpu(random(32, 16), kind=10), "is on a device of DLPack's kind 10"),
    (lambda: OnGpu(random(32, 16).astype("float64")), r"has the type float64, but the kernel needs float32\[32, 16\]"),
    (lambda: OnGpu(random(16, 32)), r"has the shape \[16, 32\], but the kernel needs float32\[32, 16\]"),
    (lambda: OnGpu(random(32, 16), offset=4), "begins at an address that is not a multiple of 16 bytes"),
])
def test_a_wrong_array_says_what_is_wrong(matmul, value, part):
    value = value() if callable(value) else value
    with pytest.raises(hone.ArrayError, match="^A " + part):
        matmul(value, OnGpu(random(16, 48)), out=OnGpu(numpy.zeros((32, 48), "float32")))


@only_fake
def test_wrong_calls_say_what_is_wrong(matmul, monkeypatch):
    A, B = OnGpu(random(32, 16)), OnGpu(random(16, 48))
    with pytest.raises(hone.InvalidArgument, match=r"neither of CuPy nor of PyTorch.*out=\(C: f32\[32, 48\]\)"):
        matmul(A, B)
    with pytest.raises(hone.InvalidArgument, match="1 arrays are given"):
        matmul(A)
    with pytest.raises(hone.InvalidArgument, match="out has 2 arrays"):
        matmul(A, B, out=[A, B])
    with pytest.raises(hone.ArrayError, match="^C has the shape"):
        matmul(A, B, out=A)
    transposed = OnGpu(random(32, 16))
    transposed.strides = (1, 32)
    with pytest.raises(hone.ArrayError, match=r"^A has the strides \[1, 32\] in elements.* dense row-major"):
        matmul(transposed, B, out=OnGpu(random(32, 48)))
    with pytest.raises(hone.InvalidArgument, match="A is not a constant input; those of matmul are none"):
        matmul.with_constants(A=A)
    far = OnGpu(random(16, 48))
    far.device = 1
    with pytest.raises(hone.ArrayError, match="^B is on GPU 1, but this call is on GPU 0"):
        matmul(A, far, out=OnGpu(random(32, 48)))


@only_fake
def test_an_output_must_not_overlap_an_input(client):
    relu = client.tune("relu m=8 n=16", trials=2, target="cuda", progress=False)
    X = OnGpu(random(8, 16))
    with pytest.raises(hone.ArrayError, match="the array for the output . overlaps ."):
        relu(X, out=X)


@only_fake
def test_constants_are_packed_once_on_the_gpu(client):
    kernel = client.tune(CONSTANT, trials=3, target="cuda", progress=False)
    A, W, C = OnGpu(random(8, 16)), OnGpu(random(16, 32)), OnGpu(numpy.zeros((8, 32), "float32"))
    expected = A.host @ W.host
    numpy.testing.assert_allclose(kernel(A, W, out=C).host, expected, rtol=1e-4, atol=1e-5)
    bound = kernel.with_constants(W=W)
    assert [one.name for one in bound.inputs] == ["A"]
    W.host[...] = 0  # the kernel has a copy
    C.host[...] = 0
    numpy.testing.assert_allclose(bound(A, out=C).host, expected, rtol=1e-4, atol=1e-5)
    assert (kernel(A, W, out=C).host == 0).all()
    with pytest.raises(hone.InvalidArgument, match=r"the constant W: f32\[16, 32\] is missing"):
        kernel.with_constants()
    far = OnGpu(random(8, 16))
    far.device = 1
    with pytest.raises(hone.ArrayError, match="^A is on GPU 1, but the constants of the kernel are on GPU 0"):
        bound(far, out=C)
    del bound
    gc.collect()


@only_fake
def test_a_network_for_a_gpu_takes_arrays_of_the_cpu(client, tmp_path):
    from onnx_model import perceptron
    expected = perceptron(tmp_path / "net.onnx")
    networks = client.load(str(tmp_path / "net.onnx"), batch=[1, 4], target="cuda")
    x = random(4, 16)
    numpy.testing.assert_allclose(networks(x), expected(x), rtol=1e-4, atol=1e-5)
    tuned = client.tune(str(tmp_path / "net.onnx"), batch=2, target="cuda", trials=2, wait=False).result(timeout=200)
    numpy.testing.assert_allclose(tuned(x[:2]), expected(x[:2]), rtol=1e-4, atol=1e-5)
    assert "cuda" in _programs.device("cuda")[1]


@only_real
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_of_a_library_on_a_real_gpu(matmul, library):
    module = pytest.importorskip(library)
    if library == "torch":
        A, B = (torch_array.cuda() for torch_array in (module.randn(32, 16), module.randn(16, 48)))
        stream = module.cuda.Stream()
        on, to_numpy = module.cuda.stream(stream), lambda array: array.cpu().numpy()
        stream.wait_stream(module.cuda.current_stream())
    else:
        A, B = module.asarray(random(32, 16)), module.asarray(random(16, 48))
        on, to_numpy = module.cuda.Stream(non_blocking=True), lambda array: array.get()
        module.cuda.get_current_stream().synchronize()
    C = matmul(A, B)
    assert type(C) is type(A)
    expected = to_numpy(A) @ to_numpy(B)
    numpy.testing.assert_allclose(to_numpy(C), expected, rtol=1e-4, atol=1e-4)
    with on:
        numpy.testing.assert_allclose(to_numpy(matmul(A, B)), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(hone.ArrayError, match="A has the strides"):
        matmul(module.ones((16, 32), dtype=A.dtype, **({"device": "cuda"} if library == "torch" else {})).T, B)
