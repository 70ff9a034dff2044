"""max(x, 0) + log1p(exp(-|x|)), which is log(1 + exp(x)) without overflow, becomes BNLL.

So the ONNX converter writes Softplus and Mish, and PyTorch and JAX write logaddexp(x, 0). PyTorch's newer exporter also keeps
its Softplus's straight line: where(x > 20, x, softplus(x)), which differs from the curve by less than float32 can tell.
"""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary, scalar_operand

#: From here on log1p(exp(-x)) is less than a half of x's last bit.
_STRAIGHT = 17.0


def _inside(view: View, name: str, *kinds: str) -> str | None:
    """x where a tensor, read once at each level, is f(g(...(x)))."""
    for kind in kinds:
        op = view.producer(name, "UnaryOp")
        if op is None or op["opType"] != kind or not view.only_here(name):
            return None
        name = op.inputs[0]
    return name


def _positive_part(view: View, name: str) -> str | None:
    op = view.producer(name)
    if op is None or not view.only_here(name):
        return None
    if op.type == "ReLU" and op["slope"] == 0:
        return op.inputs[0]
    found = scalar_operand(view, op) if is_binary(op, "MAXIMUM") else None
    return found[0] if found is not None and found[1] == 0 else None


def _sum(view: View, op: Op) -> bool:
    for positive, small in (op.inputs, op.inputs[::-1]):
        x = _positive_part(view, positive)
        if x is not None and _inside(view, small, "LOG1P", "EXP", "NEG", "ABS") == x:
            view.change(op, "UnaryOp", [x], {"opType": "BNLL"})
            return True
    return False


def _where(view: View, op: Op) -> bool:
    condition, x, curve = op.inputs
    inner, greater = view.producer(curve, "UnaryOp"), view.producer(condition)
    if inner is None or inner["opType"] != "BNLL" or inner.inputs[0] != x or greater is None or \
            not is_binary(greater, "GREATER", "GREATER_EQUAL"):
        return False
    limit = view.number(greater.inputs[1])
    if greater.inputs[0] != x or limit is None or limit < _STRAIGHT:
        return False
    view.change(op, "UnaryOp", [x], {"opType": "BNLL"})
    return True


def run(graph: Graph) -> int:
    """The sum in either order; then the choice between it and x."""
    view = View(graph)
    for op in graph.ops:
        if is_binary(op, "ADD"):
            _sum(view, op)
        elif op.type == "Select" and len(op.inputs) == 3:
            _where(view, op)
    return view.finish()


softplus = Pass("softplus", run, "max(x, 0) + log1p(exp(-|x|)) becomes one op")
