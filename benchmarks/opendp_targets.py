"""Measurements of OpenDP as targets of the auditor, at epsilon 1; run in an environment that has the package."""
# mypy: ignore-errors

from anonml_adapters import opendp

dp = __import__("opendp.prelude", fromlist=["prelude"])
dp.enable_features("contrib")

CLAIM = {"epsilon": 1, "domain": "0..3"}

_number = dp.atom_domain(T=int), dp.absolute_distance(T=int)
_real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
_answer = dp.m.make_randomized_response([0, 1, 2, 3], prob=0.4753)
_integer = opendp(dp.m.make_laplace(*_number, scale=3.0))
_double = opendp(dp.m.make_laplace(*_real, scale=3.0))
_normal = opendp(dp.m.make_gaussian(*_real, scale=3 * 4.9))
_scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
_top = opendp(dp.m.make_noisy_max(*_scores, dp.max_divergence(), scale=2 * 3.0))


def laplace_int(x):
    return _integer(x)


def laplace_float(x):
    return _double(float(x))


def gaussian(x):
    return _normal(float(x))


def response(x):
    return _answer(x)


def noisy_max(x):
    return _top([x, 1, 2])
