"""Graph and Op: plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import GraphError
from . import schema
from .tensor import Constant, TensorInfo


@dataclass
class Op:
    """One operator of a graph.

    type: MNN's OpType name ("Convolution"), a registered custom type ("acme.Cubic"), or "Extra" / "Unknown<n>" for ops that
    no definition was found for. inputs, outputs: tensor names; "" is an optional input that is absent. attrs: only
    what differs from the defaults needs to be there; `op["name"]` reads one with its default. param: the MNN parameter
    table that attrs come from, where it is not the one that the op definition names.
    """

    type: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    param: str | None = None

    def __getitem__(self, key: str) -> Any:
        """An attribute's value, or its default. Raises GraphError for a name that the op type does not have."""
        if key in self.attrs:
            return self.attrs[key]
        known = schema.attributes(self.type)
        if known is None or key not in known:
            raise GraphError(f"op {self.name!r} ({self.type}) has no attribute {key!r}; it has: "
                             f"{', '.join(sorted(known or self.attrs)) or 'none'}")
        return known[key].default

    def __str__(self) -> str:
        return f"{self.type} {self.name or (self.outputs[0] if self.outputs else '')!r}"


@dataclass
class Graph:
    """Ops in topological order, constants by name, and the interface.

    Image ops (convolution, pooling, interp, ...) always see their tensors in NCHW order here; physical layouts are a
    matter of plans. inputs/outputs: what the model's author declared. constants: NumPy arrays or packed weights.
    subgraphs: bodies of If, While and Loop, by name. metadata: the author's key/value strings. extra: what the
    .mnn file holds beside (uuid, bizCode, source framework, quantisation of activations), kept for saving.
    """

    ops: list[Op] = field(default_factory=list)
    inputs: list[TensorInfo] = field(default_factory=list)
    outputs: list[TensorInfo] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    subgraphs: dict[str, Graph] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def producers(self) -> dict[str, Op]:
        """Tensor name -> the op that makes it."""
        return {name: op for op in self.ops for name in op.outputs}

    def consumers(self) -> dict[str, list[Op]]:
        """Tensor name -> the ops that read it, each once for each use."""
        found: dict[str, list[Op]] = {}
        for op in self.ops:
            for name in op.inputs:
                if name:
                    found.setdefault(name, []).append(op)
        return found

    def fresh_name(self, stem: str) -> str:
        """A tensor name that the graph does not use yet."""
        taken = set(self.tensor_names())
        name, count = stem, 0
        while name in taken:
            count += 1
            name = f"{stem}_{count}"
        return name

    def tensor_names(self) -> Iterator[str]:
        """Every tensor name, once."""
        seen: dict[str, None] = dict.fromkeys(i.name for i in self.inputs)
        seen.update(dict.fromkeys(self.constants))
        for op in self.ops:
            seen.update(dict.fromkeys(name for name in (*op.inputs, *op.outputs) if name))
        yield from seen

    def check(self) -> None:
        """Raises GraphError if a tensor is used before it is made, made twice, or an output is made by nobody."""
        known = {i.name for i in self.inputs} | set(self.constants)
        for op in self.ops:
            for name in op.inputs:
                if name and name not in known:
                    raise GraphError(f"{op} reads {name!r}, which no earlier op, input or constant provides")
            for name in op.outputs:
                if name and name in known:
                    raise GraphError(f"{op} writes {name!r}, which exists already")
                known.add(name)
        for info in self.outputs:
            if info.name not in known:
                raise GraphError(f"output {info.name!r} is made by no op; the graph makes: {', '.join(sorted(known)[:20])}")
        for sub in self.subgraphs.values():
            sub.check()
