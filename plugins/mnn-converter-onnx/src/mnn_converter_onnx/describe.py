"""What is converted, told from the rules themselves: versions, what a rule refuses, and which ops it makes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from types import FunctionType
from typing import Any

from mnn_core.ir import schema
from mnn_core.ops import all_ops, find

from . import rules

_PACKAGE = __name__.rpartition(".")[0]
#: Parts of Unsupported messages that cannot be known before there is a model.
_HOLE = "..."


def rows() -> list[dict[str, str]]:
    """A row for each operator: operator, opsets, mnn (does the real MNN run the result: yes, no, some forms) and notes."""
    found = []
    for (domain, op_type), versions in sorted(rules.all_rules().items()):
        functions = [r.convert for r in versions]
        spans = sorted((r.since, r.until) for r in versions)
        notes = list(dict.fromkeys(n for f in functions for n in (_summary(f), *_refusals(f)) if n))
        found.append({"operator": f"{domain}.{op_type}" if domain else op_type,
                      "opsets": ", ".join(_span(*s) for s in dict.fromkeys(spans)),
                      "mnn": _in_mnn(op_type, domain, functions), "notes": "; ".join(notes)})
    have = {row["operator"] for row in found}
    for name, known in sorted(all_ops().items()):
        if known.onnx and known.onnx not in have and known.compute.__module__.startswith("mnn_core."):
            summary = (known.compute.__doc__ or "").strip().partition("\n")[0]
            found.append({"operator": known.onnx, "opsets": "all", "mnn": "yes" if name in schema.OP_NUMBERS else "no",
                          "notes": summary})
    return sorted(found, key=lambda row: ("." in row["operator"], row["operator"]))


def _span(since: int, until: int | None) -> str:
    return f"{since} on" if until is None else f"{since} to {until}" if until != since else str(since)


def _summary(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").strip().partition("\n\n")[0].replace("\n", " ").strip().rstrip(".")


@cache
def _tree(function: FunctionType) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])


def _reached(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """A rule and the functions of this package's ops that it calls, directly or not."""
    pending, seen = [inspect.unwrap(function)], set()
    while pending:
        here = pending.pop()
        if not isinstance(here, FunctionType) or here in seen or not here.__module__.startswith(_PACKAGE) or \
                here.__module__.rpartition(".")[2] in ("builder", "node", "graphs", "context", "scope", "rules"):
            continue
        seen.add(here)
        yield here
        names = {n.id for n in ast.walk(_tree(here)) if isinstance(n, ast.Name)}
        pending += [here.__globals__[n] for n in sorted(names) if isinstance(here.__globals__.get(n), FunctionType)]


def _refusals(function: Callable[..., Any]) -> list[str]:
    """What a rule itself raises Unsupported for, as far as its text tells."""
    found = []
    for node in ast.walk(_tree(inspect.unwrap(function))):
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if called in ("Unsupported", "wrong") and isinstance(node, ast.Call) and node.args and _text(node.args[0]):
            found.append(f"not: {'other values of ' * (called == 'wrong')}{_text(node.args[0])}")
    return found


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else _HOLE for v in node.values)
    return ""


def _in_mnn(op_type: str, domain: str, functions: list[Callable[..., Any]]) -> str:
    """Whether the ops that rules add are MNN's own, with attributes that MNN's tables hold."""
    own, foreign = False, False
    for function in (f for top in functions for f in _reached(top)):
        for node in ast.walk(_tree(function)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in ("binary", "unary", "cast", "gather", "reshape", "identity", "const"):
                own = True
            if node.func.attr != "op" or not node.args:
                continue
            for name in _op_types(node.args[0], op_type, domain):
                fits = name in schema.OP_NUMBERS and _fits(name, [k.arg for k in node.keywords if k.arg])
                own, foreign = own or fits, foreign or not fits
    return "yes" if not foreign else "some forms" if own else "no"


def _op_types(node: ast.expr, op_type: str, domain: str) -> list[str]:
    """The op types that an argument may stand for."""
    if isinstance(node, ast.IfExp):
        return [*_op_types(node.body, op_type, domain), *_op_types(node.orelse, op_type, domain)]
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        return [_text(node).replace(_HOLE, op_type, 1)]
    return []


def _fits(name: str, keys: list[str]) -> bool:
    """Whether MNN's table of an op type has some attributes."""
    table = schema.parameter_table(name)
    if find(name) is None:
        return False
    fields = {f.name for f in schema.TABLES.get(table or "", ())}
    if "common" in fields:
        fields |= {f.name for f in schema.TABLES[f"{table}Common"]}
    return all(k in fields or k == "dtype" for k in keys)
