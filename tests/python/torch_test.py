"""torch.compile with the backend hone."""

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="onnx, which PyTorch's exporter needs, is not installed")

import hone  # noqa: E402
from hone import torch as backend  # noqa: E402

OTHER_WEIGHTS = "weights are not those that the graph was compiled with"


@pytest.fixture(autouse=True)
def fresh(client):
    torch._dynamo.reset()
    backend.counts.clear()


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def compiled(model):
    return torch.compile(model, backend=backend.backend)


def test_a_model_runs_as_a_network():
    model = Perceptron().eval()
    x = torch.randn(4, 16)
    with torch.no_grad():
        made = compiled(model)
        torch.testing.assert_close(made(x), model(x), rtol=1e-4, atol=1e-5)
        assert dict(backend.counts) == {"compiled": 1}
        torch.testing.assert_close(made(2 * x), model(2 * x), rtol=1e-4, atol=1e-5)
        # Packed weights would be stale.
        model.first.weight.mul_(0.5)
        torch.testing.assert_close(made(x), model(x), rtol=1e-4, atol=1e-5)
        assert backend.counts[OTHER_WEIGHTS] == 1


def test_instances_of_a_model_run_with_their_own_weights():
    models = [Perceptron().eval() for _ in range(2)]
    x = torch.randn(4, 16)
    with torch.no_grad():
        made = [compiled(model) for model in models]
        for one, model in zip(made + made, models + models):
            torch.testing.assert_close(one(x), model(x), rtol=1e-4, atol=1e-5)
    assert backend.counts["compiled"] >= 1


def test_replaced_weights_are_noticed():
    model = Perceptron().eval()
    x = torch.randn(4, 16)
    with torch.no_grad():
        made = compiled(model)
        torch.testing.assert_close(made(x), model(x), rtol=1e-4, atol=1e-5)
        for _ in range(3):  # the memory of an earlier one is free to be used again
            model.first.weight.data = torch.randn(32, 16)
            torch.testing.assert_close(made(x), model(x), rtol=1e-4, atol=1e-5)
    assert dict(backend.counts) == {"compiled": 1, OTHER_WEIGHTS: 3}


def test_several_outputs_and_shared_memory():
    def both(x):
        return torch.relu(x), x @ x.T

    x = torch.randn(4, 16)
    with torch.no_grad():
        for one, expected in zip(compiled(both)(x), both(x)):
            torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-5)
    assert dict(backend.counts) == {"compiled": 1}


@pytest.mark.parametrize("call, reason", [
    (lambda: compiled(Perceptron())(torch.randn(4, 16)), "gradients are enabled"),
    (lambda: torch.no_grad()(compiled(lambda x: torch.fft.fft(x).real))(torch.randn(8)), ""),
])
def test_other_graphs_fall_back_and_are_counted(call, reason):
    assert call() is not None
    assert "compiled" not in backend.counts and sum(backend.counts.values()) == 1
    assert next(iter(backend.counts)).startswith(reason)


def test_a_kernel_takes_and_returns_tensors(client):
    kernel = client.tune("matmul m=32 n=48 k=16", trials=6, progress=False)
    A, B = torch.randn(32, 16), torch.randn(16, 48)
    C = kernel(A, B)
    assert isinstance(C, torch.Tensor)
    torch.testing.assert_close(C, A @ B, rtol=1e-4, atol=1e-5)
    out = torch.empty(32, 48)
    assert kernel(A, B, out=out) is out
    torch.testing.assert_close(out, A @ B, rtol=1e-4, atol=1e-5)
    with pytest.raises(hone.ArrayError, match="A needs a gradient"):
        kernel(A.requires_grad_(), B)
    with pytest.raises(hone.ArrayError, match="B has the strides"):
        kernel(A.detach(), torch.randn(48, 16).T)
    assert isinstance(kernel(numpy.ones((32, 16), "float32"), numpy.ones((16, 48), "float32")), numpy.ndarray)


def test_the_backend_is_registered_and_refuses_unknown_options():
    with pytest.raises(hone.InvalidArgument, match="has no option 'trails'"):
        backend.backend(None, [], options={"trails": 1})
