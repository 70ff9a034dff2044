"""Which tensor of the graph an ONNX name stands for, and the order in which nodes must be converted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import onnx

from mnn_core import ModelFormatError

from .builder import Builder


class Scope:
    """Names of one ONNX graph or function body -> tensors of the graph that a builder makes.

    outer: the scope of the graph around a subgraph. refs: attributes of the call that a function body refers to.
    """

    def __init__(self, builder: Builder, outer: Scope | None = None, refs: Mapping[str, Any] | None = None,
                 opsets: Mapping[str, int] | None = None, calls: tuple[tuple[str, str], ...] = ()) -> None:
        self.builder, self.outer = builder, outer
        self.refs: Mapping[str, Any] = refs if refs is not None else (outer.refs if outer else {})
        self.opsets: Mapping[str, int] = opsets if opsets is not None else (outer.opsets if outer else builder.context.opsets)
        self.calls: tuple[tuple[str, str], ...] = calls or (outer.calls if outer else ())
        self.names: dict[str, str] = {}

    def bind(self, name: str, tensor: str) -> None:
        """Raises ModelFormatError if the name is bound already."""
        if name in self.names:
            raise ModelFormatError(f"tensor {name!r} is defined twice in one graph")
        self.names[name] = tensor

    def find(self, name: str) -> str:
        """The tensor of this scope's graph that a name stands for; captured from the graph around it if need be."""
        if name in self.names:
            return self.names[name]
        if self.outer is None:
            raise ModelFormatError(f"tensor {name!r} is read, but no node, input or initializer provides it")
        tensor = self.outer.find(name)
        if self.outer.builder is not self.builder:
            self.builder.capture(tensor)
        return tensor

    def new(self, name: str) -> str:
        """Binds a name to a new tensor: outermost names are kept, others are made unique in the model."""
        context = self.builder.context
        outermost = self.builder.parent is None and self.outer is None and not self.calls
        tensor = name if outermost else context.fresh(name)
        context.taken.add(tensor)
        self.bind(name, tensor)
        self.builder.declare(tensor, None, origin=name if not self.calls else None)
        return tensor


def sorted_nodes(nodes: Iterable[onnx.NodeProto], wanted: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes that the wanted tensors need, each after those it reads from. Raises ModelFormatError for a cycle."""
    nodes = list(nodes)
    maker: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in node.output:
            if name and maker.setdefault(name, i) != i:
                raise ModelFormatError(f"tensor {name!r} is made by two nodes: {nodes[maker[name]].name!r} and {node.name!r}")
    order: list[int] = []
    state = [0] * len(nodes)  # 0 not seen, 1 being visited, 2 done
    for root in sorted({maker[n] for n in wanted if n in maker}):
        stack: list[tuple[int, Iterator[str]]] = []
        if state[root] == 0:
            state[root] = 1
            stack.append((root, iter(_reads(nodes[root]))))
        while stack:
            i, reads = stack[-1]
            for name in reads:
                j = maker.get(name)
                if j is None or state[j] == 2:
                    continue
                if state[j] == 1:
                    raise ModelFormatError(f"node {nodes[j].name!r} ({nodes[j].op_type}) depends on its own output {name!r}")
                state[j] = 1
                stack.append((j, iter(_reads(nodes[j]))))
                break
            else:
                state[i] = 2
                order.append(i)
                stack.pop()
    return [nodes[i] for i in (sorted(order) if _is_sorted(nodes, sorted(order)) else order)]


def _is_sorted(nodes: list[onnx.NodeProto], picked: list[int]) -> bool:
    """Whether the file's own order, which people know, will do."""
    made = {name for i in picked for name in nodes[i].output}
    for i in picked:
        if any(name in made and name for name in _reads(nodes[i])):
            return False
        made.difference_update(nodes[i].output)
    return True


def _reads(node: onnx.NodeProto) -> list[str]:
    """Names that a node reads, those that its subgraphs may capture included."""
    found = [n for n in node.input if n]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found += _captured(attribute.g)
    return found


def _captured(graph: onnx.GraphProto) -> list[str]:
    own = {n for node in graph.node for n in node.output} | {i.name for i in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer}
    reads = [n for node in graph.node for n in _reads(node)] + [o.name for o in graph.output]
    return [n for n in dict.fromkeys(reads) if n not in own]
