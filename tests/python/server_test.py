"""What a user does with a private server: tune, look up, load, list, interrupt."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import hone
from conftest import REPOSITORY, server_runs
from hone import _programs
from onnx_model import perceptron

MATMUL = "matmul m=32 n=48 k=16"
MNIST = str(REPOSITORY / "tests/client/network/onnx/testdata/mnist-8.onnx")


def random(*shape):
    return numpy.random.default_rng(0).standard_normal(shape).astype("float32")


@pytest.fixture(scope="session")
def matmul(client):
    return client.tune(MATMUL, trials=6, progress=False)


def test_the_private_server_starts_by_itself_and_stops(home, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "second" / "data"))
    with hone.Client(local=True) as second:
        assert not server_runs(home / "second")
        assert second.jobs() == []
        assert server_runs(home / "second")
        with hone.Client(local=True) as third:
            assert third.connection.address == second.connection.address
    deadline = time.monotonic() + 20
    while server_runs(home / "second"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_results_of_other_autotuners_are_kept(client):
    cache, other = hone.cache.Cache("gpu a", client), hone.cache.Cache("gpu b", client)
    assert cache.get("softmax") is None
    cache.put("softmax", b"\0\xff old")
    cache.put("softmax", b"\0\xff new")
    assert cache.get("softmax") == b"\0\xff new" and other.get("softmax") is None
    cache.put("large", bytes(1 << 20))
    assert len(cache.get("large")) == 1 << 20
    for name, value in (("empty", b""), ("too large", bytes((1 << 20) + 1)), ("", b"v"), ("n" * 513, b"v")):
        with pytest.raises(hone.InvalidArgument):
            cache.put(name, value)


def test_triton_finds_the_files_of_a_kernel(client):
    first, second = hone.cache.TritonBackend("k1", client), hone.cache.TritonBackend("k2", client)
    assert first.get(["add.json"]) == {}
    first.put("add.json", "{}")
    first.put("add.cubin", b"\x7fELF")
    first.put("huge.cubin", bytes((1 << 20) + 1))
    assert first.get(["add.json", "add.cubin", "huge.cubin"]) == {"add.json": b"{}", "add.cubin": b"\x7fELF"}
    assert second.get(["add.json"]) == {}


def test_a_tuned_kernel_computes(matmul):
    A, B = random(32, 16), random(16, 48)
    numpy.testing.assert_allclose(matmul(A, B), A @ B, rtol=1e-4, atol=1e-5)
    C = numpy.zeros((32, 48), "float32")
    assert matmul(A, B, out=C) is C
    numpy.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-5)
    assert matmul.job.state == "done" and matmul.job.trials == 6 and sum(matmul.job.counts.values()) == 6
    assert matmul.best.latency_ns > 0 and "GFLOP/s" in repr(matmul) and "<table>" in matmul._repr_html_()


def test_jax_arrays_are_read_and_returned(matmul):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    A, B = random(32, 16), random(16, 48)
    C = matmul(jax.numpy.array(A), jax.numpy.array(B))
    assert isinstance(C, jax.Array)
    numpy.testing.assert_allclose(numpy.asarray(C), A @ B, rtol=1e-4, atol=1e-5)


def test_wrong_calls_say_what_is_wrong(matmul):
    A, B = random(32, 16), random(16, 48)
    with pytest.raises(hone.InvalidArgument, match=r"1 arrays are given, but the kernel needs A: f32\[32, 16\], B"):
        matmul(A)
    with pytest.raises(hone.ArrayError, match="^B has the shape"):
        matmul(A, A)
    with pytest.raises(hone.ArrayError, match="^C has the type float64"):
        matmul(A, B, out=numpy.zeros((32, 48)))
    same = numpy.zeros(32 * 48, "float32")
    with pytest.raises(hone.ArrayError, match="the output C overlaps the input A"):
        matmul(same[:32 * 16].reshape(32, 16), B, out=same.reshape(32, 48))
    locked = numpy.zeros((32, 48), "float32")
    locked.flags.writeable = False
    with pytest.raises(hone.ArrayError, match="the output C is read-only"):
        matmul(A, B, out=locked)
    with pytest.raises(hone.InvalidArgument, match="A is not a constant input; those of matmul are none"):
        matmul.with_constants(A=A)


def test_constants_are_packed_once(client):
    kernel = client.tune("workload packed\ninput A: f32[8, 16]\ninput W: f32[16, 32] constant\n"
                         "output C[i: 8, j: 32] = sum(k: 16) A[i, k] * W[k, j]\n", trials=3, progress=False)
    A, W = random(8, 16), random(16, 32)
    expected = A @ W
    numpy.testing.assert_allclose(kernel(A, W), expected, rtol=1e-4, atol=1e-5)
    bound = kernel.with_constants(W=W)
    assert [one.name for one in bound.inputs] == ["A"]
    W[...] = 0  # the kernel has a copy
    numpy.testing.assert_allclose(bound(A), expected, rtol=1e-4, atol=1e-5)
    assert (kernel(A, W) == 0).all()
    with pytest.raises(hone.InvalidArgument, match=r"the constant W: f32\[16, 32\] is missing"):
        kernel.with_constants()


def test_integers(client):
    kernel = client.tune("quantized_matmul m=8 n=16 k=32", trials=2, progress=False)
    A = numpy.random.default_rng(1).integers(0, 255, (8, 32)).astype("uint8")
    B = numpy.random.default_rng(2).integers(-128, 127, (32, 16)).astype("int8")
    numpy.testing.assert_array_equal(kernel(A, B), A.astype("int32") @ B.astype("int32"))


def test_threads_share_a_kernel(matmul):
    def run(seed):
        A = numpy.random.default_rng(seed).standard_normal((32, 16)).astype("float32")
        B = random(16, 48)
        return all(numpy.allclose(matmul(A, B), A @ B, rtol=1e-4, atol=1e-5) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_best_and_load(client, matmul):
    best = client.best(MATMUL)
    assert best.confirmed and not best.nearest and best.workload == hone.Workload(MATMUL).text
    A, B = random(32, 16), random(16, 48)
    numpy.testing.assert_allclose(client.load(MATMUL, threads=1)(A, B), A @ B, rtol=1e-4, atol=1e-5)
    near = client.best("matmul m=32 n=48 k=32", nearest=True)
    assert near.nearest and near.latency_ns == 0
    with pytest.raises(hone.NothingKnown):
        client.best("matmul m=3 n=3 k=3")
    with pytest.raises(hone.NothingKnown):
        client.load("matmul m=3 n=3 k=3")
    with pytest.raises(hone.NothingKnown, match="no|unknown"):
        client.job(987654)


def test_a_kernel_of_another_machine_is_not_loaded(client, matmul):
    import dataclasses
    foreign = dataclasses.replace(matmul.best, target="aarch64-cortexa76-neon-4c-00000000")
    with pytest.raises(hone.Failed, match="neither the CPU of this machine"):
        client.artifact(foreign)
    with pytest.raises(hone.Failed, match="another workload"):
        client.kernel_of(hone.Workload("relu m=4 n=4"), matmul.best)(random(4, 4))
    with pytest.raises(hone.InvalidArgument, match="the private server measures only here"):
        client.tune(MATMUL, trials=1, target="aarch64-cortexa76-neon-4c-00000000")


def test_wrong_requests_start_no_job(client):
    before = len(client.jobs())
    with pytest.raises(hone.InvalidArgument, match="strategy"):
        client.tune(MATMUL, trials=1, strategy="luck")
    with pytest.raises(hone.InvalidArgument, match="shapes, batch and only_missing are for networks"):
        client.tune(MATMUL, trials=1, shapes={"x": (1,)})
    assert len(client.jobs()) == before


def test_a_job_is_followed_or_cancelled(client):
    job = client.tune("conv2d n=1 h=8 w=8 ci=8 co=8 k=3 s=1 p=1", trials=100000, wait=False)
    assert not job.has_ended and job.max_trials == 100000
    assert job._thread.is_alive()  # a private server cancels a job that nobody has followed for 10 s
    with pytest.raises(TimeoutError, match="it continues"):
        job.wait(timeout=0.5)
    while job.trials < 4:  # its fields follow it
        time.sleep(0.02)
    assert client.job(job.id).refresh().trials >= 4
    assert job.cancel().wait(timeout=150).state == "cancelled"
    assert job.best.latency_ns > 0 and str(job.id) in str(job)
    assert client.job(job.id).state == "cancelled"


def test_proposals_are_measured_among_the_candidates(client):
    job = client.tune("matmul m=48 n=32 k=16", trials=24, wait=False)
    draft = job.draft()
    verdicts = job.propose([draft, draft.replace("k: 16", "k: 8"), draft + "nonsense", draft], proposer="test")
    refusals = [one.refusal for one in verdicts]
    # The search may have proposed its own draft before.
    assert refusals[0] in ("", "known") and refusals[1:] in (["other_workload", "malformed", "known"],
                                                             ["malformed", "malformed", "known"]), verdicts
    assert all(one.why for one in verdicts if not one.accepted) and verdicts[2].trial == -1
    with pytest.raises(hone.InvalidArgument, match="proposer"):
        job.propose([draft], proposer="not a name")
    with pytest.raises(hone.InvalidArgument, match="not bytes"):
        job.propose([draft.encode()])
    job.wait(timeout=150)
    with pytest.raises(hone.Failed, match="propose for another job"):
        job.propose([draft])
    measured = job.measured()
    assert any(one.trial == 0 for one in measured) and all("trace 1" in one.trace for one in measured)
    assert {one.record for one in job.outcomes(proposer="test")} == {one.record for one in measured if one.proposer}


def test_an_external_job_measures_only_proposals(client):
    job = client.tune("matmul m=40 n=32 k=16", trials=2, time="100s", strategy="external", wait=False)
    verdicts = job.propose([job.draft()], proposer="test")
    assert verdicts[0].accepted, verdicts
    outcomes = list(job.outcomes([verdicts[0].trial], timeout=100))
    assert [one.outcome for one in outcomes] == ["ok"] and outcomes[0].proposer == "test"
    assert job.cancel().wait(timeout=150).state == "cancelled" and job.trials == 1
    shown = _programs.call(["jobs", "show", job.id, *client.connection.words()])
    assert shown["proposers"][0]["name"] == "test" and shown["proposers"][0]["measured_count"] == 1
    records = _programs.call(["records", "query", "--proposer", "test", "--job", job.id, *client.connection.words()])
    assert {one["proposer"] for one in records["records"]} == {"test"}


def test_the_example_of_a_proposer(home, client):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "client/python")}
    example = subprocess.run([sys.executable, str(REPOSITORY / "client/python/examples/propose_tiles.py"),
                              "matmul m=64 n=48 k=32", "48", "external"], env=environment, capture_output=True, text=True, timeout=300)
    assert example.returncode == 0, example.stderr
    assert "is done: 48 trials" in example.stdout and "proposed by propose_tiles" in example.stdout
    assert int(example.stdout.split("proposed by propose_tiles: ")[1].split()[0]) >= 40, example.stdout


def test_a_closed_client_says_so(home, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "closed" / "data"))
    with hone.Client(local=True) as second:
        job = second.tune(MATMUL, trials=100000, wait=False)
    with pytest.raises(hone.Failed, match="this client is closed"):
        second.jobs()
    with pytest.raises(hone.Failed, match="closed"):
        job.wait(timeout=20)


def test_records_and_plots(client, matmul):
    records = matmul.job.records()
    assert len([one for one in records if one["policy"] == "screen" and not one["is_default"]]) >= 6
    assert len(client.records(op="matmul", limit=2)) == 2 and len(client.records(op="nothing")) == 0
    assert records[0]["outcome"] == "ok" and records[0]["latency_ns"] > 0
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = records.frame()
    assert len(frame) == len(records) and frame.latency_ns.min() > 0 and "<table" in records._repr_html_()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert "data:image/png" in matmul.job.plot()._repr_html_()
    assert hone.plot.roofline(matmul.best).data["flops_per_byte"] == pytest.approx([32 * 48 * 16 * 2 / (4 * (512 + 768 + 1536))])


def test_a_bar_shows_the_search(client, capfd):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    client.tune("relu m=64 n=64", trials=3, progress=True)
    assert "3/3" in capfd.readouterr().err


def test_a_network(client, tmp_path):
    network = client.load(MNIST)
    image = random(*network.inputs[0].shape)
    numpy.save(tmp_path / "in.npy", image)
    _programs.call(["run", MNIST, "--draft", "--in", str(tmp_path / "in.npy"), "--out", str(tmp_path / "out.npy"),
                    *client.connection.words()])
    numpy.testing.assert_allclose(network(image), numpy.load(tmp_path / "out.npy"), rtol=1e-5, atol=1e-5)
    assert len(network.profile(image)) > 3 and "mnist-8.onnx" in repr(network)
    counts = network.schedules
    assert counts["confirmed"] + counts["measured"] + counts["draft"] == 5 and counts["unchecked"] == counts["draft"]
    with ThreadPoolExecutor(3) as pool:
        for made in pool.map(lambda _: network(image), range(6)):
            numpy.testing.assert_array_equal(made, network(image))
    with pytest.raises(hone.ArrayError, match="the kernel needs float32"):
        network(image.astype("float64"))
    with pytest.raises(hone.InvalidArgument, match="0 arrays are given, but the network needs"):
        network()
    with pytest.raises(hone.InvalidArgument, match="missing.onnx"):
        client.load("missing.onnx")


def test_a_network_is_tuned_as_one_job(client):
    job = client.tune(MNIST, trials=8, wait=False)
    assert job.is_network and job.wait(timeout=200).state == "done" and job.latency_ns > 0
    network = job.result(timeout=1)
    assert network(random(*network.inputs[0].shape)).shape == network.outputs[0].shape


def test_a_network_for_several_batches(client, tmp_path):
    model = str(tmp_path / "net.onnx")
    expected = perceptron(tmp_path / "net.onnx")
    networks = client.load(model, batch=[numpy.int64(1), 4, 8])
    for batch in (8, 1, 4):
        x = random(batch, 16)
        numpy.testing.assert_allclose(networks(x), expected(x), rtol=1e-4, atol=1e-5)
        assert networks.for_shapes(x).inputs[0].shape == (batch, 16) and len(networks.profile(x)) > 0
    with pytest.raises(hone.ArrayError, match=r"^x has the shape \[3, 16\], but the network was loaded for batches of 1, 4 and 8; load it"):
        networks(random(3, 16))
    with pytest.raises(hone.ArrayError, match="x has the type float64"):
        networks(random(4, 16).astype("float64"))
    with pytest.raises(hone.ArrayError, match="x is a list"):
        networks([[1.0] * 16])
    with pytest.raises(hone.InvalidArgument, match="2 arrays are given"):
        networks(random(4, 16), random(4, 16))
    assert "batches of 1, 4 and 8" in repr(networks)
    one = client.load(model, batch=numpy.int64(2))
    assert isinstance(one, hone.Network) and one(random(2, 16)).shape == (2, 8)
    several = client.load(model, shapes=[{"N": 3}, {"x": (5, 16)}])
    assert several(random(3, 16)).shape == (3, 8) and several(random(5, 16)).shape == (5, 8)


def test_the_batch_of_several_inputs(client, tmp_path):
    model = str(tmp_path / "net.onnx")
    expected = perceptron(tmp_path / "net.onnx", inputs=(("x", ("N", 16)), ("z", (None, "width"))))
    networks = client.load(model, batch=[2, 4], shapes={"width": 16})
    x, z = random(4, 16), random(4, 16) + 1
    numpy.testing.assert_allclose(networks(x, z), expected(x + z), rtol=1e-4, atol=1e-5)
    with pytest.raises(hone.ArrayError, match=r"^z has the shape \[2, 16\].* batches of 2 and 4"):
        networks(x, z[:2])
    with pytest.raises(hone.InvalidArgument, match=r"the input z has more open dimensions than the batch: \[\?, width\]; give its shape"):
        client.load(model, batch=[2])


def test_a_wrong_batch_says_what_is_wrong(client, tmp_path):
    model = str(tmp_path / "net.onnx")
    perceptron(tmp_path / "net.onnx")
    for batch, part in [([], "batch is an empty list"), ([1, 0], "batch has 0, which is not a positive number"),
                        (["1"], "batch has '1'")]:
        with pytest.raises(hone.InvalidArgument, match=part):
            client.load(model, batch=batch)
    with pytest.raises(hone.InvalidArgument, match=r"mnist-8.onnx has no input whose first dimension is open.*Input3: \[1, 1, 28, 28\]"):
        client.load(MNIST, batch=[1, 2])
    with pytest.raises(hone.InvalidArgument, match="shapes and batch are for networks"):
        client.load(MATMUL, batch=2)
    with pytest.raises(hone.InvalidArgument, match="missing.onnx"):
        client.load("missing.onnx", batch=[1])


def test_each_batch_is_tuned(client, tmp_path):
    model = str(tmp_path / "net.onnx")
    expected = perceptron(tmp_path / "net.onnx")
    networks = client.tune(model, batch=[2, 6], trials=3, progress=False)
    assert [network.inputs[0].shape for network in networks.networks] == [(2, 16), (6, 16)]
    x = random(6, 16)
    numpy.testing.assert_allclose(networks(x), expected(x), rtol=1e-4, atol=1e-5)
    jobs = client.tune(model, batch=[2, 3], trials=2, wait=False)
    assert [job.wait(timeout=200).state for job in jobs] == ["done", "done"]
    assert jobs[1].result()(random(3, 16)).shape == (3, 8)


def test_sizes_as_text_are_one_network(client, tmp_path):
    model = str(tmp_path / "net.onnx")
    expected = perceptron(tmp_path / "net.onnx")
    network = client.tune(model, shapes={"N": "2,6"}, trials=6, progress=False)
    assert isinstance(network, hone.Network) and network.sizes == (2, 6) and network.inputs[0].shape == (6, 16)
    for batch in range(1, 7):
        x = random(batch, 16)
        numpy.testing.assert_allclose(network(x), expected(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(hone.ArrayError, match="N is 7, but the network runs 1 to 6"):
        network(random(7, 16))


def test_export_writes_files(client, matmul, tmp_path):
    files = client.export(MATMUL, tmp_path / "kernel")
    assert (tmp_path / "kernel" / "matmul.so") in files and all(one.exists() for one in files)


INTERRUPTED = """
import hone, numpy, sys
hone.client().connection.start_worker("cpu")
print("ready", flush=True)
try:
    hone.tune("matmul m=40 n=40 k=40", trials=100000, progress=False)
except hone.Interrupted as stopped:
    print(stopped.job.state, stopped.job.best.latency_ns > 0, isinstance(stopped, KeyboardInterrupt))
"""


def test_ctrl_c_confirms_and_keeps_the_result(client):
    program = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        workload = hone.Workload("matmul m=40 n=40 k=40").text
        while not any(one._message.workload == workload and one.trials >= 3 for one in client.jobs()):
            assert time.monotonic() < deadline and program.poll() is None
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        output, trouble = program.communicate(timeout=120)
    finally:
        program.kill()
    assert output == "cancelled True True\n", trouble
    assert client.best("matmul m=40 n=40 k=40").latency_ns > 0


def test_a_forked_process_is_told_but_runs_kernels(client, matmul):
    A, B = random(32, 16), random(16, 48)
    expected = matmul(A, B)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = numpy.array_equal(matmul(A, B), expected)
            client.best(MATMUL)
            said = "no error"
        except hone.Forked as error:
            said = f"{same} {error}"
        except BaseException as error:
            said = repr(error)
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        assert pipe.read().startswith("True this process was forked from one that was connected")
    os.waitpid(child, 0)
    assert client.best(MATMUL).latency_ns > 0  # the parent goes on


def in_another_process(queue):
    queue.put(hone.load(MATMUL)(random(32, 16), random(16, 48)).shape)


def test_a_spawned_process_works(matmul):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=in_another_process, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == (32, 48)
    process.join()


def test_a_server_for_a_team(client, tmp_path):
    """TLS and tokens, with the files of hone-server init."""
    programs = _programs.folder()
    import socket
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    subprocess.run([programs / "hone-server", "init", tmp_path / "team", "--host", "localhost", "--port", str(port)],
                   check=True, capture_output=True)
    log = open(tmp_path / "log", "w")
    server = subprocess.Popen([programs / "hone-server", "--config", tmp_path / "team/hone.toml"], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 30
        with hone.Client(config=str(tmp_path / "team/client.conf")) as member:
            while True:
                try:
                    assert member.jobs() == []
                    break
                except hone.ServerUnavailable:
                    assert time.monotonic() < deadline
            with pytest.raises(hone.NothingKnown):
                member.best(MATMUL)
            # The program that the package starts gets the same secrets.
            assert _programs.call(["jobs", "list", *member.connection.words()])["jobs"] == []
            settings = member.connection.settings
        # Of several servers, the one that serves is called.
        with hone.Client(f"localhost:1,{settings.server}", ca=settings.ca, token=settings.token) as patient:
            assert patient.jobs() == []
            assert _programs.call(["jobs", "list", *patient.connection.words()])["jobs"] == []
        with hone.Client(settings.server, ca=settings.ca, token="wrong" * 10) as stranger:
            with pytest.raises(hone.PermissionDenied):
                stranger.jobs()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)
        log.close()


def test_a_client_keeps_its_data_folder(home, monkeypatch):
    """Although the environment changes between its making and its first call."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "kept" / "data"))
    made = hone.Client(local=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "other" / "data"))
    with made:
        assert made.jobs() == []
        assert server_runs(home / "kept") and not server_runs(home / "other")


def test_the_calls_of_many_threads_start_one_server(home, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "many" / "data"))
    with hone.Client(local=True) as shared:
        barrier = threading.Barrier(6)

        def ask(_):
            barrier.wait()
            return shared.jobs()

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(ask, range(6))) == [[]] * 6
