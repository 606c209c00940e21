"""A network that Hone has exported.

    from hone_network import Network

    network = Network()
    y, = network(x)

@SIGNATURE@

Inputs are NumPy arrays, or what NumPy makes arrays of: lists, or objects with DLPack or the buffer protocol. Outputs are new
NumPy arrays; without NumPy they are memoryviews. Types that NumPy does not have (bf16) are their bits, as unsigned integers.
If the end of the model runs on the host, because its shapes depend on what the network computes, that needs ONNX Runtime or the
package onnx; Network.before_tail() is the network without it.
A Network is for one thread at a time; Network.sibling() makes another one that shares the weights.
"""

import copy
import ctypes
import os

try:
    import numpy
except ImportError:
    numpy = None

_FOLDER = os.path.dirname(os.path.abspath(__file__))
# The models of the nodes that run on the host, by the size of the network, or one at 0 for all sizes.
_TAILS = {}  # @TAILS@
_ALIGNMENT = 64
# For each type: NumPy's name, and the code and size of memoryviews.
_TYPES = {
    "f16": ("float16", "e", 2), "f32": ("float32", "f", 4), "f64": ("float64", "d", 8), "i8": ("int8", "b", 1),
    "u8": ("uint8", "B", 1), "i32": ("int32", "i", 4), "i64": ("int64", "q", 8), "bool": ("bool", "?", 1),
    "bf16": ("uint16", "H", 2), "f8e4m3": ("uint8", "B", 1), "f8e5m2": ("uint8", "B", 1),
}


class _Runtime(ctypes.Structure):
    _fields_ = [("parallel_for", ctypes.c_void_p), ("threads", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_int64), ("open_axis", ctypes.c_int32)]


class Tensor:
    """The name, type and shape of an input or output."""

    def __init__(self, tensor):
        self.name = tensor.name.decode()
        self.dtype = tensor.dtype.decode()
        self.shape = tuple(tensor.shape[:tensor.rank])
        self.bytes = tensor.bytes
        # The dimension that grows with the size of the network; -1 if none does.
        self.open_axis = tensor.open_axis

    def resized(self, value, size):
        """This tensor of the given size, for another value of the open dimension."""
        if value == size or self.open_axis < 0:
            return self
        made = copy.copy(self)
        extent = self.shape[self.open_axis] // size * value
        made.shape = (*self.shape[:self.open_axis], extent, *self.shape[self.open_axis + 1:])
        made.bytes = self.bytes // size * value
        return made

    def __repr__(self):
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Error(RuntimeError):
    """The network cannot be opened or run."""


def _load(path):
    library = ctypes.CDLL(path)
    pointer = ctypes.c_void_p
    for name, result, arguments in [
            ("open_on", ctypes.c_int, [ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(pointer)]),
            ("verify", ctypes.c_int, [pointer]),
            ("close", None, [pointer]),
            ("input_count", ctypes.c_int32, [pointer]),
            ("output_count", ctypes.c_int32, [pointer]),
            ("inputs", ctypes.POINTER(_Tensor), [pointer]),
            ("outputs", ctypes.POINTER(_Tensor), [pointer]),
            ("step_count", ctypes.c_int32, [pointer]),
            ("step_name", ctypes.c_char_p, [pointer, ctypes.c_int32]),
            ("step_kernel", ctypes.c_char_p, [pointer, ctypes.c_int32]),
            ("new_instance", ctypes.c_int, [pointer, ctypes.POINTER(_Runtime), ctypes.POINTER(pointer)]),
            ("free_instance", None, [pointer]),
            ("run", ctypes.c_int, [pointer, pointer, pointer]),
            ("size_count", ctypes.c_int32, [pointer]),
            ("sizes", ctypes.POINTER(ctypes.c_int64), [pointer]),
            ("size_name", ctypes.c_char_p, [pointer]),
            ("find_size", ctypes.c_int, [pointer, ctypes.c_int64, ctypes.POINTER(ctypes.c_int32)]),
            ("inputs_of", ctypes.POINTER(_Tensor), [pointer, ctypes.c_int32]),
            ("outputs_of", ctypes.POINTER(_Tensor), [pointer, ctypes.c_int32]),
            ("run_size", ctypes.c_int, [pointer, ctypes.c_int64, pointer, pointer]),
            ("profile", ctypes.c_int, [pointer, pointer, pointer, pointer]),
            ("threads", _Runtime, [ctypes.c_int32]),
            ("error", ctypes.c_char_p, [])]:
        function = getattr(library, "hone_network_" + name)
        function.restype = result
        function.argtypes = arguments
    return library


# The names in ml_dtypes, and the numbers in ONNX, of types that NumPy does not have.
_FOREIGN = {"bf16": ("bfloat16", 16), "f8e4m3": ("float8_e4m3fn", 17), "f8e5m2": ("float8_e5m2", 19)}


def _tail_of_onnxruntime(onnxruntime, path, tensors):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the nodes are small
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    make = onnxruntime.OrtValue.ortvalue_from_numpy

    def value_of(tensor, array):
        if tensor.dtype in _FOREIGN:
            return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _FOREIGN[tensor.dtype][1])
        return make(array)

    def run(arrays):
        given = {tensor.name: value_of(tensor, array) for tensor, array in zip(tensors, arrays)}
        return [value.numpy() for value in session.run_with_ort_values(None, given)]

    return run


def _tail_of_onnx(reference, path, tensors):
    evaluator = reference.ReferenceEvaluator(path)

    def typed(tensor, array):
        if tensor.dtype not in _FOREIGN:
            return array
        import ml_dtypes  # the package onnx needs it, too
        return array.view(getattr(ml_dtypes, _FOREIGN[tensor.dtype][0]))

    return lambda arrays: evaluator.run(None, {tensor.name: typed(tensor, array) for tensor, array in zip(tensors, arrays)})


def _load_tail(path, tensors):
    """A function from the outputs of the library, which are of these types, to those of the model."""
    try:
        import onnxruntime
        return _tail_of_onnxruntime(onnxruntime, path, tensors)
    except ImportError:
        pass
    try:
        import onnx.reference
        return _tail_of_onnx(onnx.reference, path, tensors)
    except ImportError:
        raise Error(f"{path} has nodes that run on the host; install onnxruntime or onnx to run them, or call before_tail() "
                    "for what they read") from None


class _Weights:
    """The opened network and the instances of all siblings. At the end of a program, Python finalizes objects in any order."""

    def __init__(self, folder, device):
        self.instances = set()
        self.folder = folder
        self.tails = {}  # loaded when they are first called
        self.call = _load(os.path.join(folder, "libhone_network.so"))
        self.address = ctypes.c_void_p()
        path = os.path.join(folder, "hone_network.weights")
        if self.function("open_on")(os.fsencode(path), device, ctypes.byref(self.address)) != 0:
            raise Error(self.function("error")().decode(errors="replace"))

    def function(self, name):
        return getattr(self.call, "hone_network_" + name)

    def free(self, instance):
        if instance in self.instances:
            self.instances.remove(instance)
            self.function("free_instance")(instance)

    def __del__(self):
        for instance in list(self.instances):
            self.free(instance)
        if getattr(self, "address", None):
            self.function("close")(self.address)


def _array(given):
    """An array of NumPy; without NumPy, a memoryview."""
    try:
        if numpy is None:
            return memoryview(given)
        if isinstance(given, numpy.ndarray):
            return given
        return numpy.from_dlpack(given) if hasattr(given, "__dlpack__") else numpy.asarray(given)
    except TypeError:
        raise Error(f"an input is a {type(given).__name__}; give an array") from None
    except ValueError as error:
        raise Error(f"an input is no array: {error}") from None


def _typed(tensor, given):
    """The same. Lists have no type, so their numbers get that of the tensor if it has them."""
    array = _array(given)
    if numpy is None or not isinstance(given, (list, tuple)) or array.dtype.kind not in "biuf":
        return array
    typed = array.astype(_TYPES[tensor.dtype][0])
    is_float = typed.dtype.kind == "f"
    return typed if is_float or not array.size or (array.dtype.kind != "f" and (typed == array).all()) else array


def _address(view):
    """The address of a memoryview's bytes, and what keeps them in memory."""
    if not view.c_contiguous:
        raise Error("an input is not contiguous")
    if view.readonly:
        copy = ctypes.create_string_buffer(view.tobytes(), view.nbytes)
        return ctypes.addressof(copy), copy
    raw = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(raw), raw


class Network:
    """The network, with memory for one run at a time. `threads` 0: as many as OMP_NUM_THREADS
    says, or else as there are CPUs that this process may use. `device`: the number of a GPU, if the
    network is for one; -1: that of the environment variable HONE_DEVICE, or else 0.

    A network with an open dimension has `sizes`, the values for which it was exported; `inputs`, `outputs` and `steps` are those
    of the largest one. A call finds the value from the shapes of its arrays. If nodes run on the host, `outputs` are what they read."""

    def __init__(self, folder=_FOLDER, threads=0, _weights=None, device=-1):
        self._weights = _weights or _Weights(folder, device)
        self._threads = threads
        function, address = self._weights.function, self._weights.address
        self.inputs = [Tensor(function("inputs")(address)[i]) for i in range(function("input_count")(address))]
        self.outputs = [Tensor(function("outputs")(address)[i]) for i in range(function("output_count")(address))]
        self.sizes = tuple(function("sizes")(address)[:function("size_count")(address)])
        self.size_name = function("size_name")(address).decode()
        self.steps = [(function("step_name")(address, s).decode(), function("step_kernel")(address, s).decode())
                      for s in range(function("step_count")(address))]
        self._runtime = function("threads")(threads)
        self._instance = ctypes.c_void_p()
        if function("new_instance")(address, ctypes.byref(self._runtime), ctypes.byref(self._instance)) != 0:
            raise Error(function("error")().decode(errors="replace"))
        self._weights.instances.add(self._instance.value)

    def __del__(self):
        if getattr(self, "_instance", None):
            self._weights.free(self._instance.value)

    def verify(self):
        """Reads all weights and checks that they are those of the export."""
        if self._weights.function("verify")(self._weights.address) != 0:
            raise Error(self._weights.function("error")().decode(errors="replace"))

    def sibling(self):
        """Another instance, for another thread."""
        return Network(threads=self._threads, _weights=self._weights)

    def __call__(self, *arrays):
        """Returns the list of the model's outputs."""
        computed = self._run(arrays, None)
        if not _TAILS:
            return computed
        size = 0
        if 0 not in _TAILS:
            typed = [_typed(tensor, array) for tensor, array in zip(self.inputs, arrays)]
            size = self.tensors_for(typed)[0]
        tails = self._weights.tails
        if size not in tails:
            tails[size] = _load_tail(os.path.join(self._weights.folder, _TAILS[size]), self.outputs)
        return list(tails[size](computed))

    def before_tail(self, *arrays):
        """Returns the list of `outputs`, which the nodes read that run on the host."""
        return self._run(arrays, None)

    def profile(self, *arrays):
        """Runs once and returns the name, kernel and nanoseconds of each step."""
        times = (ctypes.c_int64 * len(self.steps))()
        self._run(arrays, times)
        return [(name, kernel, ns) for (name, kernel), ns in zip(self.steps, times)]

    def _run(self, arrays, times):
        if len(arrays) != len(self.inputs):
            raise Error(f"the network has {len(self.inputs)} inputs, not {len(arrays)}")
        arrays = [_typed(tensor, array) for tensor, array in zip(self.inputs, arrays)]
        value, wanted, results = (None, self.inputs, self.outputs) if times is not None else self.tensors_for(arrays)
        kept = [self._input(tensor, array) for tensor, array in zip(wanted, arrays)]
        made = [self._output(tensor) for tensor in results]
        inputs = (ctypes.c_void_p * max(len(kept), 1))(*[address for address, _ in kept])
        outputs = (ctypes.c_void_p * max(len(made), 1))(*[address for address, _ in made])
        function = self._weights.function
        if value is not None:
            status = function("run_size")(self._instance, value, inputs, outputs)
        elif times is None:
            status = function("run")(self._instance, inputs, outputs)
        else:
            status = function("profile")(self._instance, inputs, outputs, times)
        if status != 0:
            raise Error(function("error")().decode(errors="replace"))
        return [array for _, array in made]

    def tensors_for(self, arrays):
        """The value of the open dimension for arrays of these shapes, with the inputs and outputs for it."""
        if not self.sizes:
            return None, self.inputs, self.outputs
        function, address = self._weights.function, self._weights.address
        shapes = [tuple(array.shape if hasattr(array, "shape") else _array(array).shape) for array in arrays]
        for number, size in enumerate(self.sizes):
            inputs = self._of(number, "inputs")
            if [one.shape for one in inputs] == shapes:
                return size, inputs, self._of(number, "outputs")
        # Not one of the sizes: the first input that grows with the size tells the value.
        for tensor, shape in zip(self.inputs, shapes):
            axis = tensor.open_axis
            if axis < 0 or len(shape) != len(tensor.shape):
                continue
            value = shape[axis] * self.sizes[-1] // tensor.shape[axis]
            number = ctypes.c_int32()
            if function("find_size")(address, value, ctypes.byref(number)) != 0:
                raise Error(function("error")().decode(errors="replace"))
            size = self.sizes[number.value]
            resized = [[one.resized(value, size) for one in self._of(number.value, ends)] for ends in ("inputs", "outputs")]
            return value, *resized
        sizes = ", ".join(map(str, self.sizes))
        raise Error(f"the shapes of the inputs fit none of the sizes; {self.size_name} may be {sizes}")

    def _of(self, number, ends):
        tensors = self._weights.function(ends + "_of")(self._weights.address, number)
        return [Tensor(tensors[i]) for i in range(len(getattr(self, ends)))]

    @staticmethod
    def _input(tensor, array):
        name = _TYPES[tensor.dtype][0]
        if numpy is not None:
            if array.dtype != name or array.shape != tensor.shape:
                raise Error(f"input {tensor.name} is {name}{list(tensor.shape)}, not {array.dtype}{list(array.shape)}")
            array = numpy.ascontiguousarray(array)
            return array.ctypes.data, array
        if array.nbytes != tensor.bytes:
            raise Error(f"input {tensor.name} has {tensor.bytes} bytes, not {array.nbytes}")
        return _address(array)

    @staticmethod
    def _output(tensor):
        name, code, size = _TYPES[tensor.dtype]
        memory = bytearray(tensor.bytes + _ALIGNMENT)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        skip = -begin % _ALIGNMENT
        view = memoryview(memory)[skip:skip + tensor.bytes]
        address = begin + skip
        if numpy is not None:
            return address, numpy.frombuffer(view, dtype=name).reshape(tensor.shape)
        return address, view.cast(code, tensor.shape) if tensor.shape else view.cast(code)
