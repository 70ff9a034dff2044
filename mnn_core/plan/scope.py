"""What plans of one graph share: its constants, values folded from constants alone, and tensor names that are taken."""

from __future__ import annotations

import threading

import numpy as np

from ..ir import Constant, Graph, Op, Spec, decoded


class Scope:
    """The constants and names of one graph. A model has one for its graph and one for each loop body.

    constants: the graph's own and those of branches that were inlined. folded: values of ops that depend on constants
    only, so that the next plan need not compute them again; lowered: the same for ops that lowering made.
    """

    def __init__(self, graph: Graph, subgraphs: dict[str, Graph] | None = None) -> None:
        self.graph = graph
        self.subgraphs = {**(subgraphs or {}), **graph.subgraphs}
        self.constants: dict[str, Constant] = dict(graph.constants)
        self.folded: dict[str, np.ndarray] = {}
        self.lowered: dict[tuple, list[np.ndarray]] = {}
        self.inlined: dict[tuple[str, str], tuple[list[Op], dict[str, str]]] = {}
        self._arrays: dict[str, np.ndarray] = {}
        self._taken = set(graph.tensor_names())
        self._lock = threading.Lock()

    def is_static(self, name: str) -> bool:
        """Whether a tensor is the same in every run of the graph."""
        return not name or name in self.constants or name in self.folded

    def array(self, name: str) -> np.ndarray:
        """A constant's value. Packed ones are decoded once: plans, and the weights that kernels pack, share the array."""
        with self._lock:
            if name not in self._arrays:
                value = np.ascontiguousarray(decoded(self.constants[name])).reshape(self.constants[name].shape)
                value.flags.writeable = False  # of this view; outputs that are constants are copied because of it
                self._arrays[name] = value
            return self._arrays[name]

    def spec(self, name: str) -> Spec | None:
        """Spec of a constant, with its value unless that is packed; None if there is no such constant."""
        if name in self.folded:
            return Spec.of(self.folded[name])
        constant = self.constants.get(name)
        if constant is None:
            return None
        if isinstance(constant, np.ndarray) or name in self._arrays:
            return Spec.of(self.array(name))
        return Spec(tuple(constant.shape), np.dtype(constant.dtype))

    def fresh(self, stem: str) -> str:
        """A tensor name that nothing in this scope uses; it is taken from now on."""
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}:{count}"
        self._taken.add(name)
        return name

    def constant_bytes(self) -> int:
        """Bytes of constants as they are held now: decoded ones as arrays, others as stored."""
        arrays = {**{n: c for n, c in self.constants.items() if isinstance(c, np.ndarray)}, **self._arrays, **self.folded}
        return sum({id(a): a.nbytes for a in arrays.values()}.values())
