"""A graph as passes look at it: who makes and who reads each tensor, kept up to date while ops are changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir import Graph, Op


class View:
    """Producers and consumers of a graph's tensors. Change ops through it, and call `finish` at the end.

    A fusion changes the last op of a pattern in place, so that it reads what the pattern reads; the ops before it that
    nothing reads any more are left to dead-code removal, and those that something else reads stay.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outputs = {o.name for o in graph.outputs}
        self.changed = 0
        self._producers = graph.producers()
        self._uses: dict[str, int] = {}
        self._after: dict[int, list[Op]] = {}
        self._removed: set[int] = set()
        for op in graph.ops:
            self._count(op, 1)

    def _count(self, op: Op, step: int) -> None:
        for name in op.inputs:
            if name:
                self._uses[name] = self._uses.get(name, 0) + step

    def producer(self, name: str, *types: str) -> Op | None:
        """The op that makes a tensor, if it is of one of the types (or of any, if none are named)."""
        op = self._producers.get(name)
        return op if op is not None and (not types or op.type in types) else None

    def only_here(self, name: str) -> bool:
        """Whether a tensor is read exactly once, and is no output of the graph."""
        return self._uses.get(name, 0) == 1 and name not in self.outputs

    def reads(self, name: str) -> int:
        """How often a tensor is read, being no output of the graph; 0 for outputs."""
        return 0 if name in self.outputs else self._uses.get(name, 0)

    def array(self, name: str) -> np.ndarray | None:
        """A constant's value; None for other tensors, and for packed constants, which passes leave alone."""
        found = self.graph.constants.get(name) if name else None
        return found if isinstance(found, np.ndarray) else None

    def number(self, name: str) -> float | None:
        """The value of a constant of one element."""
        array = self.array(name)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def change(self, op: Op, op_type: str, inputs: Sequence[str], attrs: Mapping[str, Any]) -> None:
        """Makes another op of this one, with the same outputs."""
        self._count(op, -1)
        op.type, op.inputs, op.attrs, op.param = op_type, list(inputs), dict(attrs), None
        self._count(op, 1)
        self.changed += 1

    def constant(self, stem: str, array: np.ndarray) -> str:
        """Adds a constant and returns its name."""
        name = self.graph.fresh_name(stem)
        self.graph.constants[name] = np.ascontiguousarray(array).reshape(array.shape)
        return name

    def insert_after(self, op: Op, new: Op) -> None:
        """Puts an op that reads an output of another one right behind it."""
        self._after.setdefault(id(op), []).append(new)
        self._count(new, 1)
        self._producers.update(dict.fromkeys(new.outputs, new))

    def move_output(self, op: Op, fresh: str) -> str:
        """Gives output 0 of an op another name and returns the old one, which a new op must then make."""
        old, op.outputs[0] = op.outputs[0], fresh
        self._producers[fresh] = op
        return old

    def finish(self) -> int:
        """Writes the ops back, in an order in which each comes after what it reads; returns the number of changes."""
        if self.changed:
            ops: list[Op] = []
            for op in self.graph.ops:
                self._expand(op, ops)
            self.graph.ops[:] = ops
        return self.changed

    def _expand(self, op: Op, ops: list[Op]) -> None:
        ops.append(op)
        for new in self._after.get(id(op), ()):
            self._expand(new, ops)


def scalar_operand(view: View, op: Op) -> tuple[str, float] | None:
    """(tensor, number) of a BinaryOp that joins a tensor with a constant of one element, in either order."""
    for x, other in (op.inputs, op.inputs[::-1]):
        value = view.number(other)
        if value is not None and view.array(x) is None and view.array(other).ndim <= 1:  # type: ignore[union-attr]
            return x, value
    return None


def is_binary(op: Op | None, *kinds: str) -> bool:
    """Whether an op is a plain BinaryOp of one of the kinds."""
    return op is not None and op.type == "BinaryOp" and op["opType"] in kinds and op["activationType"] == 0
