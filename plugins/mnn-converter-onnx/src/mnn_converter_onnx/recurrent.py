"""Recurrent layers of any kind as loops: every activation, clipping, peepholes, sequence lengths, all directions.

What depends on the input alone is multiplied for all steps at once, before the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mnn_core import Graph, ModelFormatError, TensorInfo

from .builder import Builder
from .node import Node
from .ops.control import add_while
from .rules import Unsupported

#: Operator -> gates.
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
_ALPHA = {"LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "HardSigmoid": 0.2, "Elu": 1.0, "Affine": 1.0, "ScaledTanh": 1.0}
_BETA = {"HardSigmoid": 0.5, "Affine": 0.0, "ScaledTanh": 1.0}

Activation = Callable[[Builder, str], str]


@dataclass
class Layer:
    """A recurrent node: its inputs with the batch in dimension 1, and its attributes."""

    kind: str
    x: str
    weights: list[str]
    hidden: int
    directions: tuple[str, ...]
    lengths: str
    states: list[str]
    peepholes: str
    batch: str

    @property
    def gates(self) -> int:
        return GATES[self.kind]


def layer(node: Node, b: Builder) -> Layer:
    """Reads a node; the layout with the batch first is transposed away."""
    hidden = node.get("hidden_size", 0)
    shape = b.shape(node.inputs[2])
    if not hidden and shape is not None and len(shape) == 3:
        hidden = shape[2] or 0
    if hidden < 1:
        raise Unsupported("a recurrent layer without hidden_size")
    directions = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}
    direction = node.get("direction", "forward")
    if direction not in directions:
        raise ModelFormatError(f"{node}: direction {direction!r}; expected one of {', '.join(directions)}")
    x, states = node.inputs[0], [node.input(5), node.input(6)] if node.op_type == "LSTM" else [node.input(5)]
    if node.get("layout", 0):
        x = b.op("Permute", [x], dims=(1, 0, 2))
        states = [b.op("Permute", [s], dims=(1, 0, 2)) if s else "" for s in states]
    batch = b.op("GatherV2", [b.shape_of(x), b.ints(1), b.const(np.int32(0))], dtype=np.int64)
    weights = [node.inputs[1], node.inputs[2], node.input(3)]
    return Layer(node.op_type, x, weights, hidden, directions[direction], node.input(4), states, node.input(7), batch)


def activations(node: Node, count: int) -> list[Activation]:
    """The activation functions of all directions, in order."""
    names = node.get("activations") or _DEFAULTS[node.op_type] * count
    alphas, betas = list(node.get("activation_alpha") or ()), list(node.get("activation_beta") or ())
    found = []
    for name in names:
        name = next((n for n in _ALPHA if n.lower() == name.lower()), name)
        alpha = (alphas.pop(0) if alphas else _ALPHA[name]) if name in _ALPHA else 0.0
        beta = (betas.pop(0) if betas else _BETA[name]) if name in _BETA else 0.0
        found.append(_activation(name, alpha, beta))
    if len(found) != len(_DEFAULTS[node.op_type]) * count:
        raise ModelFormatError(f"{node}: {len(found)} activations; expected {len(_DEFAULTS[node.op_type]) * count}")
    return found


def is_default(node: Node) -> bool:
    """Whether a node has the default activations and nothing else that MNN's own ops lack."""
    names = [n.lower() for n in node.get("activations") or ()]
    defaults = [n.lower() for n in _DEFAULTS[node.op_type]]
    return (not names or names == defaults * (len(names) // len(defaults))) and not node.get("clip", 0.0) and \
        not node.get("input_forget", 0) and not node.input(4) and not node.input(7)


def _activation(name: str, alpha: float, beta: float) -> Activation:
    def scaled(b: Builder, x: str) -> str:
        x = b.binary("MUL", x, b.number(alpha, x))
        return b.binary("ADD", x, b.number(beta, x))

    def thresholded(b: Builder, x: str) -> str:
        return b.op("Select", [b.binary("GREATER", x, b.number(alpha, x), dtype=np.bool_), x, b.number(0, x)], dtype=b.dtype(x))

    def soft_plus(b: Builder, x: str) -> str:
        small = b.unary("LOG1P", b.unary("EXP", b.unary("NEG", b.unary("ABS", x))))
        return b.binary("ADD", b.binary("MAXIMUM", x, b.number(0, x)), small)

    table: dict[str, Activation] = {
        "sigmoid": lambda b, x: b.unary("SIGMOID", x),
        "tanh": lambda b, x: b.unary("TANH", x),
        "relu": lambda b, x: b.op("ReLU", [x]),
        "leakyrelu": lambda b, x: b.op("ReLU", [x], slope=alpha),
        "elu": lambda b, x: b.op("ELU", [x], alpha=alpha),
        "affine": scaled,
        "hardsigmoid": lambda b, x: b.op("ReLU6", [scaled(b, x)], minValue=0.0, maxValue=1.0),
        "scaledtanh": lambda b, x: b.binary("MUL", b.unary("TANH", b.binary("MUL", x, b.number(beta, x))), b.number(alpha, x)),
        "thresholdedrelu": thresholded,
        "softsign": lambda b, x: b.binary("REALDIV", x, b.binary("ADD", b.unary("ABS", x), b.number(1, x))),
        "softplus": soft_plus,
    }
    if name.lower() not in table:
        raise Unsupported(f"activation {name!r}; expected one of {', '.join(sorted(table))}")
    return table[name.lower()]


def pick(b: Builder, tensor: str, index: int) -> str:
    """One direction's part of a tensor."""
    return b.op("GatherV2", [tensor, b.const(np.int32(index)), b.const(np.int32(0))])


def part(b: Builder, tensor: str, axis: int, start: int, stop: int) -> str:
    """Some rows or columns of a tensor."""
    return b.op("StridedSlice", [tensor, b.ints(start), b.ints(stop), b.ints(axis)], fromType=1)


def initial(b: Builder, found: Layer, which: int, direction: int) -> str:
    """A direction's first state, [batch, hidden]; zeros if it is not given."""
    if found.states[which]:
        return pick(b, found.states[which], direction)
    shape = b.op("Concat", [found.batch, b.ints(found.hidden)], axis=0)
    return b.op("Fill", [shape, b.const(np.float32(0))], dtype=np.float32)


def backwards(b: Builder, x: str, lengths: str) -> str:
    """A sequence in reverse, each row from its own end."""
    if lengths:
        return b.op("ReverseSequence", [x, lengths], batchDim=1, seqDim=0)
    return b.op("Reverse", [x, b.const(np.array([0], np.int32))])


def run(node: Node, b: Builder, found: Layer) -> None:
    """Adds the loops of all directions, and the outputs Y, Y_h and, of an LSTM, Y_c."""
    functions = activations(node, len(found.directions))
    each = len(functions) // len(found.directions)
    results = []
    for i, direction in enumerate(found.directions):
        x = backwards(b, found.x, found.lengths) if direction == "reverse" else found.x
        states, steps = _direction(node, b, found, x, i, functions[i * each:(i + 1) * each])
        if direction == "reverse":
            steps = backwards(b, steps, found.lengths)
        results.append((steps, *states))
    finish(node, b, [[r[0] for r in results], *([r[1 + k] for r in results] for k in range(len(found.states)))])


def finish(node: Node, b: Builder, parts: list[list[str]]) -> None:
    """Joins directions: Y from [T, batch, hidden] parts, states from [batch, hidden] parts; then the layout."""
    for k, pieces in enumerate(parts):
        output = node.output(k)
        if not output:
            continue
        axis, permuted = (1, (2, 0, 1, 3)) if k == 0 else (0, (1, 0, 2))
        widened = [b.op("Unsqueeze", [p], squeezeDims=(axis,)) for p in pieces]
        layout = node.get("layout", 0)
        joined = b.op("Concat" if len(widened) > 1 else "Identity", widened, 1 if layout else [output],
                      **({"axis": axis} if len(widened) > 1 else {}))
        if layout:
            b.op("Permute", [joined], [output], dims=permuted)


def _direction(node: Node, b: Builder, found: Layer, x: str, index: int, functions: list[Activation]) -> tuple[list[str], str]:
    """The loop of one direction: (final states, all steps)."""
    hidden, gates = found.hidden, found.gates
    weight = b.op("Permute", [pick(b, found.weights[0], index)], dims=(1, 0))
    recurrent = b.op("Permute", [pick(b, found.weights[1], index)], dims=(1, 0))
    inputs = b.op("MatMul", [x, weight])
    recurrent_bias = ""
    if found.weights[2]:
        bias = pick(b, found.weights[2], index)
        inputs = b.binary("ADD", inputs, part(b, bias, 0, 0, gates * hidden))
        recurrent_bias = part(b, bias, 0, gates * hidden, 2 * gates * hidden)
    outer = {"inputs": inputs, "recurrent": recurrent}
    if recurrent_bias:
        outer["bias"] = recurrent_bias
    if found.lengths:
        outer["lengths"] = b.op("Unsqueeze", [b.cast(found.lengths, np.int32)], squeezeDims=(1,))
    if found.peepholes:
        outer["peepholes"] = pick(b, found.peepholes, index)
    states = [initial(b, found, k, index) for k in range(len(found.states))]
    graph = Graph(name=b.context.fresh(f"{node.name}/step"))
    b.context.root.subgraphs[graph.name] = graph
    body = Builder(b.context, graph, b)
    body.node_name = f"{node.name}/step"
    names = [b.context.fresh(f"{node.name}/{n}") for n in ("i", "going", "h", "c")[:2 + len(states)]]
    kinds = [np.int64, np.bool_, np.float32, np.float32]
    for name, kind in zip(names, kinds):
        body.declare(name, np.dtype(kind), 2 if kind is np.float32 else 0)
        graph.inputs.append(TensorInfo(name, np.dtype(kind), None))
    for name in outer.values():
        body.capture(name)
    new = _step(node, body, found, outer, names, functions)
    output = new[0]
    if found.lengths:
        valid = body.binary("LESS", names[0], outer["lengths"], dtype=np.bool_)
        zero = body.const(np.float32(0))
        output = body.op("Select", [valid, new[0], zero], dtype=np.float32)
        new = [body.op("Select", [valid, n, old], dtype=np.float32) for n, old in zip(new, names[2:])]
    else:
        output = body.op("Identity", [new[0]], dtype=np.float32)
    still = body.context.fresh(f"{node.name}/still")
    graph.constants[still] = np.array(1, np.int32)
    graph.outputs = [TensorInfo(still, np.dtype(np.bool_), ())]
    graph.outputs += [TensorInfo(n, np.dtype(np.float32), None) for n in (*new, output)]
    trips = b.op("GatherV2", [b.shape_of(x), b.const(np.int32(0)), b.const(np.int32(0))], dtype=np.int64)
    finals = [b.context.fresh(f"{node.name}/final") for _ in states]
    steps = b.context.fresh(f"{node.name}/steps")
    add_while(b, f"{node.name}/loop{index}", body, [trips, b.const(np.int32(1)), *states], finals, [steps])
    return finals, steps


def _step(node: Node, b: Builder, found: Layer, outer: dict[str, str], names: list[str],
          functions: list[Activation]) -> list[str]:
    """One step: the new states."""
    n, clip = found.hidden, node.get("clip", 0.0)
    now = b.op("GatherV2", [outer["inputs"], names[0], b.const(np.int32(0))], dtype=np.float32)
    h = names[2]

    def clipped(x: str) -> str:
        return b.op("ReLU6", [x], minValue=-clip, maxValue=clip) if clip else x

    def gate(x: str, k: int) -> str:
        return part(b, x, 1, k * n, (k + 1) * n)

    if found.kind == "GRU":
        return [_gru(node, b, found, outer, now, h, functions, clipped)]
    total = b.binary("ADD", now, b.op("MatMul", [h, outer["recurrent"]]))
    if "bias" in outer:
        total = b.binary("ADD", total, outer["bias"])
    if found.kind == "RNN":
        return [functions[0](b, clipped(total))]
    c = names[3]
    i, o, f, z = (gate(total, k) for k in range(4))

    def peep(x: str, k: int, state: str) -> str:
        if "peepholes" not in outer:
            return x
        return b.binary("ADD", x, b.binary("MUL", part(b, outer["peepholes"], 0, k * n, (k + 1) * n), state))

    i = functions[0](b, clipped(peep(i, 0, c)))
    f = b.binary("SUB", b.const(np.float32(1)), i) if node.get("input_forget", 0) else functions[0](b, clipped(peep(f, 2, c)))
    z = functions[1](b, clipped(z))
    cell = b.binary("ADD", b.binary("MUL", f, c), b.binary("MUL", i, z))
    o = functions[0](b, clipped(peep(o, 1, cell)))
    return [b.binary("MUL", o, functions[2](b, cell)), cell]


def _gru(node: Node, b: Builder, found: Layer, outer: dict[str, str], now: str, h: str, functions: list[Activation],
         clipped: Callable[[str], str]) -> str:
    """h' = (1 - z) * candidate + z * h."""
    n = found.hidden
    gates = part(b, now, 1, 0, 2 * n)
    gates = b.binary("ADD", gates, b.op("MatMul", [h, part(b, outer["recurrent"], 1, 0, 2 * n)]))
    if "bias" in outer:
        gates = b.binary("ADD", gates, part(b, outer["bias"], 0, 0, 2 * n))
    z, r = (functions[0](b, clipped(part(b, gates, 1, k * n, (k + 1) * n))) for k in range(2))
    own, bias = part(b, outer["recurrent"], 1, 2 * n, 3 * n), ""
    if "bias" in outer:
        bias = part(b, outer["bias"], 0, 2 * n, 3 * n)
    if node.get("linear_before_reset", 0):
        inner = b.op("MatMul", [h, own])
        inner = b.binary("MUL", r, b.binary("ADD", inner, bias) if bias else inner)
    else:
        inner = b.op("MatMul", [b.binary("MUL", r, h), own])
        inner = b.binary("ADD", inner, bias) if bias else inner
    candidate = functions[1](b, clipped(b.binary("ADD", part(b, now, 1, 2 * n, 3 * n), inner)))
    rest = b.binary("SUB", b.const(np.float32(1)), z)
    return b.binary("ADD", b.binary("MUL", rest, candidate), b.binary("MUL", z, h))
