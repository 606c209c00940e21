#!/usr/bin/env python3
"""Prints the coefficients of exponential.cc, power.cc and error_function.cc.

Each is a minimax fit in the relative error of the function that it serves, by Remez' exchange algorithm on a grid of
Chebyshev points with 40 digits (Muller, Elementary Functions, 3rd ed., chapter 3), rounded to the format afterwards. The
errors are in units of the last place of 1, before and after rounding. Needs mpmath.
"""
import struct

from mpmath import cos, erf, erfc, exp, expm1, log, log1p, lu_solve, matrix, mp, mpf, pi, sqrt

mp.dps = 40
GRID = 250


def remez(f, weight, degree, a, b):
    """The c that minimizes max |weight(x) · (f(x) − Σ c[j] x^j)| on [a, b], and that maximum."""
    n = degree + 1
    points = [(a + b) / 2 - (b - a) / 2 * cos(pi * i / mpf(GRID)) for i in range(GRID + 1)]
    values = [f(x) for x in points]
    weights = [weight(x) for x in points]
    floor = max(weights) / 10**6  # a weight of 0 would make the system singular
    weights = [max(w, floor) for w in weights]
    reference = [round(GRID * (i + 0.5) / (n + 1)) for i in range(n + 1)]
    for _ in range(30):
        system, right = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for row, k in enumerate(reference):
            for j in range(n):
                system[row, j] = points[k] ** j
            system[row, n] = (-1) ** row / weights[k]
            right[row] = values[k]
        solution = lu_solve(system, right)
        c = [solution[j] for j in range(n)]
        error = [w * (y - sum(c[j] * x**j for j in range(n))) for x, y, w in zip(points, values, weights)]
        extrema = []
        for k in range(GRID + 1):
            if error[k] == 0:
                continue
            if extrema and (error[extrema[-1]] > 0) == (error[k] > 0):
                if abs(error[k]) > abs(error[extrema[-1]]):
                    extrema[-1] = k
            else:
                extrema.append(k)
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(error[extrema[0]]) < abs(error[extrema[-1]]) else -1)
        largest = max(abs(e) for e in error)
        if len(extrema) < n + 1 or extrema == reference:
            break
        reference = extrema
    return c, largest


def round_f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def round_f64(x):
    return mpf(float(x))


def show(name, f, weight, degree, a, b, rounded, digits):
    c, best = remez(f, weight, degree, a, b)
    c = [rounded(x) for x in c]
    grid = [a + (b - a) * i / mpf(400) for i in range(401)]
    worst = max(abs(weight(x) * (f(x) - sum(c[j] * x**j for j in range(degree + 1)))) for x in grid)
    scale = mpf(2) ** (digits - 1)
    print(f"{name}: {float(best * scale):.3f}, rounded {float(worst * scale):.3f} ulp")
    print("  " + ", ".join(float(x).hex() for x in c), flush=True)


def expm1_tail(r):
    return (expm1(r) - r) / r**2 if abs(r) > mpf(10) ** -10 else mpf(1) / 2 + r / 6 + r * r / 24


def log_tail(f):
    return (log1p(f) - f) / f**2 if abs(f) > mpf(10) ** -10 else -mpf(1) / 2 + f / 3 - f * f / 4


def atanh_tail(z):
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) - 2 * s) / s**3 if z > mpf(10) ** -14 else mpf(2) / 3 + mpf(2) / 5 * z


def atanh_rest(z):
    """The series from its fourth term on."""
    return sum(2 * z**n / (2 * n + 7) for n in range(40))


def erf_near(u):
    return erf(sqrt(u)) / sqrt(u) - 1 if u > 0 else 2 / sqrt(pi) - 1


def normal_tail(t):
    z = SHIFT * (mpf(1) / 2 + t) / (mpf(1) / 2 - t)
    return erfc(z / sqrt(mpf(2))) / 2 * exp(z * z / 2) * (z + SHIFT)


HALF_LN2 = log(mpf(2)) / 2 * mpf("1.00001")
LOW, HIGH = (sqrt(mpf(1) / 2) - 1) * mpf("1.0001"), (sqrt(mpf(2)) - 1) * mpf("1.0001")
ATANH_END = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1) * mpf("1.0001")) ** 2

for name, degree, rounded, digits in (("kExpm1F32", 4, round_f32, 24), ("kExpm1F64", 9, round_f64, 53)):
    show(name, expm1_tail, lambda r: abs(r**2 / expm1(r)) if r != 0 else mpf(0), degree, -HALF_LN2, HALF_LN2, rounded, digits)
show("kLogF32", log_tail, lambda f: abs(f**2 / log1p(f)) if f != 0 else mpf(0), 8, LOW, HIGH, round_f32, 24)
show("kLogF64", atanh_tail, lambda z: z / 2, 6, mpf(0), ATANH_END, round_f64, 53)
show("kRest", atanh_rest, lambda z: z**3 / 2, 6, mpf(0), ATANH_END, round_f64, 53)
for format, near_degree, split, far_degree, end, rounded, digits in (
    ("F32", 5, mpf("0.85"), 6, mpf(4), round_f32, 24),
    ("F64", 11, mpf("0.9"), 20, mpf(6), round_f64, 53),
):
    show("kNear" + format, erf_near, lambda u: 1 / (erf_near(u) + 1), near_degree, mpf(0), split**2, rounded, digits)
    show("kFar" + format, lambda x: log(erfc(x)), lambda x: erfc(x) / erf(x), far_degree, split, end, rounded, digits)
SHIFT = mpf("3.875")
for format, end, degree, rounded, digits in (
    ("F32", mpf("14.3"), 9, round_f32, 24),
    ("F64", mpf("38.6"), 21, round_f64, 53),
):
    last = end / (end + SHIFT) - mpf(1) / 2
    show("kTail" + format, normal_tail, lambda t: 1 / normal_tail(t), degree, -mpf(1) / 2, last, rounded, digits)
