"""Runs programs with probes on all of their expressions."""

import ast

import fact_probes


def instrumented(source, lines=((1, 10_000),)):
    probes = fact_probes.Probes(source, list(lines))
    return probes, compile(probes.instrument(ast.parse(source)), "program", "exec")


def facts(source, names=None):
    probes, code = instrumented(source)
    try:
        exec(code, {"__name__": "program"} if names is None else names)
    finally:
        found = probes.end()
    return found
