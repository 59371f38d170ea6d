"""Runs programs with a trace, and asks for one of their cells."""

import ast

import cell_trace
import fact_probes


def traced(source, path, names=None, *, with_facts=True):
    """Runs a program, and returns sandbox.Cell of a path, and the variables."""
    names = {"__name__": "program"} if names is None else names
    tree = ast.parse(source)
    if with_facts:  # as in a session
        fact_probes.Probes(source, [(1, 10_000)]).instrument(tree)
    trace = cell_trace.Trace(source, path)
    code = compile(trace.instrument(tree), "program", "exec")
    exec(code, names)
    return trace.end(names), names


def cell(source, path, names=None):
    """Runs a program, and returns sandbox.Cell of a path."""
    return traced(source, path, names)[0]
