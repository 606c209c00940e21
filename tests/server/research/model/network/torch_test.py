"""Compares the network library with PyTorch: torch_test.py PROGRAM, where PROGRAM is print_layers.

Exits with 77, which ctest reports as skipped, if this Python has no PyTorch.
"""

import json
import subprocess
import sys

try:
    import torch
except ImportError:
    print("torch_test.py: skipped, because this Python has no PyTorch; HONE_PYTHON names another one")
    sys.exit(77)

TOLERANCE = dict(rtol=1e-4, atol=2e-5)


def linear(case, weights, x):
    return torch.nn.functional.linear(x, weights[0].T, weights[1][0])


def layer_norm(case, weights, x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weights[0][0], weights[1][0])


def by_sequence(case, x, function):
    begin = case["begin"]
    return torch.cat([function(x[first:last]) for first, last in zip(begin, begin[1:])])


def attention(case, weights, x):
    query, query_bias, key, key_bias, value, value_bias, output, output_bias = weights

    def of_sequence(rows):
        result, _ = torch.nn.functional.multi_head_attention_forward(
            rows.unsqueeze(1), rows.unsqueeze(1), rows.unsqueeze(1), rows.shape[1], case["heads"],
            torch.cat([query.T, key.T, value.T]), torch.cat([query_bias[0], key_bias[0], value_bias[0]]),
            None, None, False, 0.0, output.T, output_bias[0], need_weights=False)
        return result.squeeze(1)

    return by_sequence(case, x, of_sequence)


def cell_weights(weights):
    return [weights[0].T, weights[2].T, weights[1][0], weights[3][0]]


def lstm(case, weights, x):
    def of_sequence(rows):
        state = torch.zeros(1, 1, weights[2].shape[0])
        result, *_ = torch.lstm(rows.unsqueeze(1), (state, state), cell_weights(weights), True, 1, 0.0, False, False, False)
        return result.squeeze(1)

    return by_sequence(case, x, of_sequence)


def gru(case, weights, x, state):
    return torch.gru_cell(x, state, *cell_weights(weights))


def check(what, ours, theirs):
    ours = torch.tensor(ours)
    torch.testing.assert_close(ours, theirs.detach().reshape(ours.shape), msg=lambda text: f"{what}: {text}", **TOLERANCE)


def check_layer(case):
    weights, inputs = ([torch.tensor(each, requires_grad=True) for each in case[key]] for key in ("weights", "inputs"))
    result = globals()[case["layer"]](case, weights, *inputs)
    check(f"{case['layer']}, result", case["result"], result)
    result.backward(torch.tensor(case["direction"]))
    for key, variables in (("input_gradients", inputs), ("weight_gradients", weights)):
        assert len(case[key]) == len(variables)
        for number, (ours, variable) in enumerate(zip(case[key], variables)):
            check(f"{case['layer']}, {key} {number}", ours, variable.grad)


def check_adam(case):
    weights = [torch.tensor(each, requires_grad=True) for each in case["weights"]]
    x, wanted = (torch.tensor(each) for each in case["inputs"])
    adam = torch.optim.Adam(weights, lr=case["rate"], weight_decay=case["decay"])
    for _ in range(case["steps"]):
        adam.zero_grad()
        y = linear(case, weights, x)
        y.backward(y.detach() - wanted)
        torch.nn.utils.clip_grad_norm_(weights, case["largest"])
        adam.step()
    for number, (ours, theirs) in enumerate(zip(case["trained"], weights)):
        check(f"adam, weights {number}", ours, theirs)


def main():
    torch.set_num_threads(1)
    cases = json.loads(subprocess.run(sys.argv[1:], check=True, capture_output=True).stdout)
    assert [case["layer"] for case in cases] == ["linear", "layer_norm", "attention", "lstm", "gru", "adam"]
    for case in cases:
        (check_adam if case["layer"] == "adam" else check_layer)(case)
        print(f"{case['layer']}: as PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
