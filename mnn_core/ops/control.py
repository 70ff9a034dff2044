"""Control flow. If and While do not compute: the planner puts a branch in the place of its If and runs the body of a loop."""

from collections.abc import Sequence
from typing import Any

from ..errors import GraphError
from ..ir import Op, Spec
from .registry import register


def _planner_only(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    raise GraphError(f"{op} is a matter of the planner: run it in a graph that holds its subgraphs")


@register("If", param="IfParam", infer=_planner_only, content=(0,), pure=False)
def if_op(op: Op, *inputs: Any) -> Any:
    """Input 0 > 0: `then_graph`, else `else_graph`. aliases_inputs: per input the branch inputs that it feeds.

    aliases_outputs: per output the tensor names (then, else); by position if absent.
    """
    raise GraphError(f"{op} is a matter of the planner: run it in a graph that holds its subgraphs")


@register("While", param="WhileParam", infer=_planner_only, dynamic=True, pure=False)
def while_op(op: Op, *inputs: Any) -> Any:
    """ONNX Loop (no `cond_graph`): inputs (trips, condition, N variables), outputs (N variables, K stacked scans).

    TensorFlow while (with `cond_graph`): see plan/control.py.
    """
    raise GraphError(f"{op} is a matter of the planner: run it in a graph that holds its subgraphs")
