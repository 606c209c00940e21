"""Runs an exported network with sizes, which is named net: use_sizes.py FOLDER (INPUT OUTPUT)…, for batches of 1, 2 and so on."""

import array
import sys

sys.path.insert(0, sys.argv[1])
import net  # noqa: E402

network = net.Network(threads=1)
assert network.sizes == (2, 4) and network.size_name == "N", network.sizes
assert network.inputs[0].shape == (4, 6), network.inputs


def floats(path):
    with open(path, "rb") as file:
        return array.array("f", file.read())


def shaped(numbers, batch):
    if net.numpy is not None:
        return net.numpy.array(numbers, dtype="float32").reshape(batch, 6)
    return memoryview(numbers).cast("B").cast("f", [batch, 6])


for batch in range(1, 5):
    x, expected = floats(sys.argv[2 * batch]), floats(sys.argv[2 * batch + 1])
    y, h = network(shaped(x, batch))
    assert tuple(y.shape) == (batch, 5) and tuple(h.shape) == (batch, 16), y.shape
    made = array.array("f", y.tobytes())
    assert max(abs(a - b) for a, b in zip(made, expected)) < 1e-5, (batch, made, expected)

if net.numpy is not None:
    # Lists have the shape of an array, and numbers of any type that fits.
    for batch in range(1, 5):
        x = net.numpy.arange(batch * 6).reshape(batch, 6)
        y, h = network(x.astype("float32"))
        for numbers in (x.tolist(), x.astype("float64").tolist()):
            listed = network(numbers)
            assert net.numpy.array_equal(listed[0], y) and net.numpy.array_equal(listed[1], h), batch
    for wrong, what in [([[1.0], [1.0, 2.0]], "an input is no array"), ([["a"] * 6], "input x is float32[1, 6], not"),
                        ([1.0] * 6, "the shapes of the inputs fit none of the sizes; N may be 2, 4")]:
        try:
            network(wrong)
        except net.Error as error:
            assert str(error).startswith(what), error
        else:
            raise AssertionError(f"{wrong} was accepted")

try:
    network(shaped(array.array("f", [0.0] * 30), 5))
except net.Error as error:
    assert str(error) == "N is 5, but the network runs 1 to 4", error
else:
    raise AssertionError("a batch that is too large was accepted")
print("right")
