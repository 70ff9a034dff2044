"""What plans of one graph share: its constants, values folded from constants alone, and tensor names that are taken."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np

from ..ir import Constant, Graph, Op, Spec, decoded


class Store:
    """Constants of a model as arrays. Packed ones are decoded once; all plans, and packed weights, go by the same array."""

    def __init__(self) -> None:
        self._arrays: dict[int, tuple[Constant, np.ndarray]] = {}
        self._lock = threading.Lock()

    def array(self, constant: Constant) -> np.ndarray:
        """The constant as a read-only array, always the same one."""
        with self._lock:
            if id(constant) not in self._arrays:
                value = np.require(decoded(constant), requirements=["C", "A"]).reshape(constant.shape)
                value.flags.writeable = False  # of this view; outputs that are constants are copied because of it
                self._arrays[id(constant)] = constant, value  # keeps the constant, so that its id stays its own
            return self._arrays[id(constant)][1]

    def has(self, constant: Constant) -> bool:
        """Whether the constant needs no decoding any more."""
        return isinstance(constant, np.ndarray) or id(constant) in self._arrays

    def nbytes(self) -> int:
        """Bytes of the arrays used so far."""
        return sum(array.nbytes for _, array in self._arrays.values())


class Scope:
    """The constants and names of one graph. A model has one for each set of outputs, and one for each loop body.

    constants: the graph's own and those of branches that were inlined. folded: values of ops that depend on constants
    only, so that the next plan need not compute them again; lowered: the same for ops that lowering made. in_loop: whether
    it is the body of a loop.
    """

    def __init__(self, graph: Graph, store: Store, subgraphs: Mapping[str, Graph] | None = None) -> None:
        self.subgraphs = {**(subgraphs or {}), **graph.subgraphs}
        self.in_loop = subgraphs is not None
        self._store = store
        self.constants: dict[str, Constant] = dict(graph.constants)
        self.folded: dict[str, np.ndarray] = {}
        self.lowered: dict[tuple, list[np.ndarray]] = {}
        self.inlined: dict[tuple[str, str], tuple[list[Op], dict[str, str]]] = {}
        self._taken = set(graph.tensor_names())

    def is_static(self, name: str) -> bool:
        """Whether a tensor is the same in every run of the graph."""
        return not name or name in self.constants or name in self.folded

    def array(self, name: str) -> np.ndarray:
        """A constant's value."""
        return self._store.array(self.constants[name])

    def spec(self, name: str) -> Spec | None:
        """Spec of a constant, with its value unless that is packed; None if there is no such constant."""
        if name in self.folded:
            return Spec.of(self.folded[name])
        constant = self.constants.get(name)
        if constant is None:
            return None
        if self._store.has(constant):
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
