"""What needs no server: workloads, arrays, settings."""

import ctypes
import doctest
import itertools
import os
import subprocess
import sys
import time
import types
from concurrent import futures

import grpc
import numpy
import pytest

import hone
from hone import _arrays, _best, _client, _connection, _job, _network, _programs, _proposals, _protocol, _workload, plot

A = hone.Tensor("A", "f32", (2, 3))


@pytest.mark.parametrize("module", [_arrays, _best, _client, _network, _proposals, _workload])
def test_examples_of_the_documentation(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


def test_a_workload_has_one_text_however_it_is_given(tmp_path):
    words = hone.Workload("matmul m=4 n=8 k=16")
    file = tmp_path / "mine.hone"
    file.write_text("# a comment\n" + words.text)
    assert hone.Workload(file) == hone.Workload(str(file)) == hone.Workload(words.text) == hone.Workload(words) == words
    assert words.name == "matmul" and [one.name for one in words.inputs] == ["A", "B"]


def test_outputs_have_the_types_of_their_expressions():
    tensors = hone.Workload(
        "workload w\ninput A: i8[8, 64]\ninput B: bool[8] constant\nt[i: 8] = sum(k: 64) i32(A[i, k])\n"
        "output (value, place)[i: 8] = argmax(k: 64) (A[i, k], index(k))\n"
        "output D[i: 8] = select(B[i], f16(t[i]), 1.0)\n").tensors
    assert [(one.name, one.dtype, one.is_constant) for one in tensors] == [
        ("A", "i8", False), ("B", "bool", True), ("value", "i8", False), ("place", "i64", False), ("D", "f16", False)]


@pytest.mark.parametrize("source, part", [
    ("matmull m=1 n=1 k=1", "matmul"),
    ("matmul m=1 n=1", "needs key 'k'"),
    ("workload w\ninput A: f32[4]\noutput B[i: 8] = A[i]\n", "3:"),
    ("missing.hone", "missing.hone: No such file"),
    ("net.onnx", "is a network"),
    ("  ", "is empty"),
])
def test_a_wrong_workload_says_what_is_wrong(source, part):
    with pytest.raises(hone.InvalidArgument, match=part.replace("(", r"\(")):
        hone.Workload(source)


def test_a_builder_writes_guards_and_arithmetic():
    b = hone.Builder("banded")
    X = b.input("X", (14, 8))
    h, c, r = hone.Axis("h", 14), hone.Axis("c", 8), hone.Axis("r", 3)
    place = h + r - 1
    b.output("Y", (h, c), hone.over.sum(r, (X[place, c] - 1.5) * 2, where=[hone.within(place, 14)]))
    made = b.workload()
    assert made == hone.Workload(
        "workload banded\ninput X: f32[14, 8]\n"
        "output Y[h: 14, c: 8] = sum(r: 3 where 0 <= h + r - 1 < 14) (X[h + r - 1, c] - 1.5) * 2\n")


def test_a_suitable_array_is_used_without_a_copy():
    array = hone.empty((2, 3))
    assert array.ctypes.data % 64 == 0
    assert _arrays.aligned(_arrays.borrowed(A, array)) is array
    odd = numpy.frombuffer(bytearray(65 + 24), "uint8")[1:25].view("float32").reshape(2, 3)
    odd = odd if odd.ctypes.data % 64 else numpy.frombuffer(bytearray(29), "uint8")[4:28].view("float32").reshape(2, 3)
    odd[...] = 7
    copy = _arrays.aligned(odd)
    assert copy is not odd and copy.ctypes.data % 64 == 0 and (copy == 7).all()


def test_long_traces_are_proposed_in_several_calls():
    sent = []

    class Server:
        def call(self, name, timeout, job, proposer, traces):
            sent.append((len(traces), sum(map(len, traces))))
            verdict = _protocol.message("ProposalVerdict")
            return types.SimpleNamespace(verdicts=[verdict(trial=len(one)) for one in traces])

    traces = ["x" * 200_000] * 100 + ["y"] * 130 + ["é" * 3_000_000] * 2
    verdicts = _proposals.propose(Server(), "7", "me", traces)
    assert [one.trial for one in verdicts] == [len(one) for one in traces]
    assert sum(count for count, _ in sent) == len(traces)
    assert max(count for count, _ in sent) <= 64 and max(size for _, size in sent) <= 8 << 20
    assert sent[-1] == (1, 3_000_000)


def test_the_result_of_a_network_has_the_tolerance_of_its_job():
    message = _protocol.method("GetJob").response(id="7", state=4, target="x86_64")
    message.network.name = "net"
    message.request.tolerance = 0.25
    loaded = []
    client = types.SimpleNamespace(load=lambda model, **options: loaded.append((model, options)))
    job = _job.Job(client, message, "net.onnx")
    job.wait = lambda timeout: job
    job.result()
    assert loaded == [("net.onnx", {"shapes": None, "target": "native", "tolerance": 0.25})]
    found = _job.Job(client, message)
    found.wait = lambda timeout: found
    with pytest.raises(hone.InvalidArgument, match=r"hone.load\(MODEL.onnx\)"):
        found.result()


def test_the_sizes_of_a_network_have_weights():
    message = _protocol.method("GetJob").response(id="7")
    assert _job.Job(None, message).sizes == {}
    for name, weight in (("N=1", 3.0), ("N=8", 0.0)):
        message.request.network.networks.add(name=name, weight=weight)
    assert _job.Job(None, message).sizes == {"N=1": 3.0, "N=8": 1.0}


class OfGpu:
    """A tensor on a device of DLPack's kind 2, CUDA."""

    def __dlpack__(self, **_):
        raise AssertionError("it must not be imported")

    def __dlpack_device__(self):
        return (2, 0)


class Exported:
    """An array that only has DLPack's interface."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_shares_memory():
    array = hone.empty((2, 3))
    assert _arrays.borrowed(A, Exported(array)).ctypes.data == array.ctypes.data


@pytest.mark.parametrize("value, part", [
    (numpy.zeros((2, 3)), "has the type float64, but the kernel needs float32"),
    (numpy.zeros((3, 2), "float32"), r"has the shape \[3, 2\], but the kernel needs float32\[2, 3\]"),
    (numpy.zeros((3, 2), "float32").T, "has the strides .* needs a dense row-major array"),
    ([[1.0, 2.0, 3.0]] * 2, "is a list; give an array"),
    (OfGpu(), "is on another device .* runs on the CPU"),
])
def test_a_wrong_array_says_what_is_wrong(value, part):
    with pytest.raises(hone.ArrayError, match="^A " + part):
        _arrays.borrowed(A, value)
    assert issubclass(hone.ArrayError, (ValueError, TypeError)) and issubclass(hone.ArrayError, hone.Error)


def test_settings_come_from_arguments_then_variables_then_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("HONE_SERVER", "HONE_CONFIG", "HONE_CA", "HONE_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert _connection.Settings().completed() == _connection.Settings()
    file = tmp_path / "hone" / "client.conf"
    file.parent.mkdir()
    stored = _connection.Settings("a:1", ca="-----BEGIN\nx\n", token='t"\\', server_name="a", insecure=True)
    file.write_text(stored.as_config())
    file.chmod(0o600)
    assert _connection.Settings().completed() == stored
    # A file of another server is ignored, because its secrets are for its own server.
    assert _connection.Settings("b:2").completed() == _connection.Settings("b:2")
    monkeypatch.setenv("HONE_SERVER", "c:3")
    assert _connection.Settings().completed() == _connection.Settings("c:3")
    monkeypatch.setenv("HONE_SERVER", "a:1")
    monkeypatch.setenv("HONE_TOKEN_FILE", "mine")
    assert _connection.Settings().completed().token_file == "mine" and _connection.Settings().completed().token == ""
    file.chmod(0o644)
    with pytest.raises(hone.PermissionDenied, match="chmod 600"):
        _connection.Settings("a:1").completed()
    file.write_text("serverr = 'a'\n")
    with pytest.raises(hone.InvalidArgument, match="there is no key 'serverr'; the keys are ca, "):
        _connection.Settings("a:1").completed()


def test_a_secret_is_never_shown_or_sent_in_clear():
    assert "hidden" not in repr(_connection.Settings(token="hidden"))
    with pytest.raises(hone.PermissionDenied, match="would not be encrypted; give ca="):
        hone.Client("example.invalid:1", token="hidden").connection.channel()


def test_an_absent_server_is_an_error_that_names_it():
    with hone.Client("unix:/nonexistent/hone.sock") as absent:
        with pytest.raises(hone.ServerUnavailable, match="/nonexistent/hone.sock does not answer"):
            absent.job(1)


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """The states that a client gets of a server that has only WatchJob, and calls end after a moment."""
    monkeypatch.setattr(_connection, "_WATCH_S", 0.3)
    monkeypatch.setattr(_connection, "_RESTART_S", 0.2)
    method = _protocol.method("WatchJob")
    server = grpc.server(futures.ThreadPoolExecutor(4))

    def states(watch):
        calls = itertools.count(1)
        handler = grpc.unary_stream_rpc_method_handler(
            lambda request, context: watch(next(calls), context), method.request.FromString, method.response.SerializeToString)
        server.add_generic_rpc_handlers([
            grpc.method_handlers_generic_handler("hone.v1.TuningService", {"WatchJob": handler})])
        server.add_insecure_port(f"unix:{tmp_path}/server")
        server.start()
        with hone.Client(f"unix:{tmp_path}/server") as client:
            yield from client.connection.watch("1")

    yield states
    server.stop(None).wait()


def be_quiet(context):
    while context.is_active():
        time.sleep(0.01)


def test_a_quiet_job_is_asked_for_again(watched):
    def watch(call, context):
        yield _protocol.message("Job")(trials=call)
        if call < 3:
            be_quiet(context)

    assert [state.trials for state in watched(watch)] == [1, 2, 3]


def test_a_server_that_says_nothing_is_unavailable(watched):
    def watch(call, context):
        if call == 1:
            yield _protocol.message("Job")(trials=call)
        be_quiet(context)

    states = watched(watch)
    assert next(states).trials == 1
    with pytest.raises(hone.ServerUnavailable, match="does not answer"):
        next(states)


def test_wrong_options_and_times_and_targets():
    with pytest.raises(TypeError, match="tune has no option 'trails'; the options are trials"):
        hone.tune("relu m=1 n=1", trails=3)
    with pytest.raises(hone.InvalidArgument, match="'5 parsecs' is not a time"):
        _client.seconds("5 parsecs")
    with pytest.raises(hone.InvalidArgument, match="the target 'gpu' is unknown; this machine has native"):
        _programs.device("gpu")
    assert _programs.device("native") == _programs.device("") and _programs.device("some-key-12345678")[0] == ""


def test_the_programs_must_be_there(tmp_path):
    code = "import hone; hone.Workload('relu m=1 n=1')"
    for variables, part in [({"HONE_PROGRAMS": str(tmp_path)}, "has no program hone"), ({}, "programs of Hone were not found")]:
        environment = {**os.environ, "PATH": str(tmp_path), **variables}
        if not variables:
            environment.pop("HONE_PROGRAMS")
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and part in done.stderr


def test_the_protocol_has_the_messages_and_streams():
    assert _protocol.enum_names("JobState")[3] == "confirming"
    assert _protocol.method("WatchJob").streams and not _protocol.method("GetJob").streams
    best_message = _protocol.message("Best")(workload="w")
    with pytest.raises(hone.NothingKnown):
        _best.best_of(best_message)


def test_importance_finds_the_decision_that_matters():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    rows = [{"operator": "m", "outcome": "ok", "policy": "screen", "trial": 4 * x + y, "created_unix_ms": 4 * x + y,
             "latency_ns": 100.0 * (1 + x) + y, "space": "s", "decisions": (x, y)} for x in range(4) for y in range(4)]
    shown = plot.importance(rows)
    assert shown.data["decision"][-1] == "decision 0" and shown.data["share"][-1] > 0.9
    assert plot.curve(rows).data["best_ns"] == [100.0] * 16
    with pytest.raises(hone.NothingKnown, match="no successful measurement"):
        plot.curve([])


def test_an_artifact_must_be_whole():
    from hone._kernel import _sections
    with pytest.raises(hone.Failed, match="cut off"):
        _sections(b"HONE")
    with pytest.raises(hone.Failed, match="another version"):
        _sections(b"HONEKERN" + bytes(ctypes.sizeof(ctypes.c_int64)))


def test_a_list_of_servers_becomes_a_target_of_grpc():
    assert _connection._target(["unix:/a", "unix:/b"]) == "unix:/a,/b"
    assert _connection._target(["127.0.0.1:1", "[::1]:2"]) == "ipv6:[::ffff:127.0.0.1]:1,[::1]:2"
    assert _connection._target(["no.such.host.invalid:1", "127.0.0.1:2"]) == "ipv6:[::ffff:127.0.0.1]:2"
    for bad in ["127.0.0.1", "unix:/a", ":1", "a:b"]:
        with pytest.raises(hone.InvalidArgument, match="is not host:port"):
            _connection._target(["127.0.0.1:1", bad])
    with pytest.raises(hone.ServerUnavailable, match="unknown host"):
        _connection._target(["no.such.host.invalid:1"])
    with pytest.raises(hone.InvalidArgument, match="server_name="):
        hone.Client("127.0.0.1:1,localhost:2", ca="-----BEGIN").jobs()
