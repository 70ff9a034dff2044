"""Matrix products, attention, and recurrent networks."""

from __future__ import annotations

import numpy as np

from .draft import Draft, Tensor
from .families import family


def _pair(g: Draft) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of the operands of a MatMul."""
    m, k, n = g.dims(3, 1, 5)
    batch = g.dims(g.integer(0, 2), 1, 3)
    a, b = (*batch, m, k), (*g.broadcast(batch, grow=False), k, n)
    kind = g.integer(0, 6)
    if kind == 5:
        a = (k,)
    elif kind == 6:
        b = (k,)
    return a, b


@family("MatMul", "MatMulInteger", "QLinearMatMul")
def matmul(g: Draft, op: str) -> list[Tensor]:
    a, b = _pair(g)
    if op == "MatMul":
        x = g.tensor(g.types(op), (1, 4))
        if g.chained and x.rank > 1 and g.flag():
            a, b = x.shape, (x.shape[-1], g.integer(1, 4))
        else:
            x = g.tensor([x.dtype], shape=a)
        return g.node(op, [x, g.tensor([x.dtype], shape=b)])
    x = g.given(g.values(g.pick([np.uint8, np.int8]), a, -20, 100))
    y = g.given(g.values(g.pick([np.int8, np.uint8]), b, -20, 100))
    if op == "MatMulInteger":
        return g.node(op, [x, y, *(g.const(np.array(3, t.dtype)) if g.flag() else None for t in (x, y))])
    scales = [g.const(np.float32(v)) for v in (0.05, 0.04, 0.63)]
    zeros = [g.const(np.array(v, d)) for v, d in ((3, x.dtype), (5, y.dtype), (7, x.dtype))]
    return g.node(op, [x, scales[0], zeros[0], y, scales[1], zeros[1], scales[2], zeros[2]], fragile=True)


@family("Gemm")
def gemm(g: Draft, op: str) -> list[Tensor]:
    m, k, n = g.dims(3, 1, 5)
    a, b = g.flag(), g.flag()
    x = g.tensor(g.types(op), shape=(k, m) if a else (m, k))
    y = g.tensor([x.dtype], shape=(n, k) if b else (k, n))
    c = g.tensor([x.dtype], shape=g.broadcast((m, n), grow=False)) if g.opset < 11 or g.flag() else None
    scale = {} if x.dtype.kind != "f" else {"alpha": g.pick([None, 0.5]), "beta": g.pick([None, 2.0])}
    return g.node(op, [x, y, c], transA=int(a) if a or g.flag() else None, transB=int(b) if b or g.flag() else None, **scale)


@family("Einsum")
def einsum(g: Draft, op: str) -> list[Tensor]:
    equation = g.pick(["ij,jk->ik", "ij->ji", "ii->i", "ii", "bij,bjk->bik", "i,j->ij", "...ij,...jk->...ik", "ij,j", "ijk->ki",
                       "bhid,bhjd->bhij", "i,i", "ij->", "ij,jk,kl->il", "...i->...", "bij,kj->bki", "ij, ij -> i",
                       "ibj,jb->b"])
    size = {label: g.integer(1, 4) for label in "abcdefghijklm"}
    shapes = []
    for term in equation.replace(" ", "").split("->")[0].split(","):
        shapes.append([*((2,) * term.count("...")), *(size[c] for c in term if c != ".")])
    dtype = g.dtype([np.float32, np.float64, np.int32, np.int64, np.float16])
    return g.node(op, [g.tensor([dtype], shape=s) for s in shapes], equation=equation)


@family("Det")
def det(g: Draft, op: str) -> list[Tensor]:
    n = g.integer(1, 4)
    return g.node(op, [g.tensor(g.types(op), shape=(*g.dims(g.integer(0, 2)), n, n))])


@family("RNN", "LSTM", "GRU")
def recurrent(g: Draft, op: str) -> list[Tensor]:
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[op]
    direction = g.pick([None, "forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    seq, batch, size, hidden = g.integer(1, 4), g.integer(1, 3), g.integer(1, 3), g.integer(1, 4)
    layout = 0
    x = g.tensor(g.types(op), shape=(seq, batch, size))
    constant = True if g.integer(0, 4) else None
    w = g.tensor([x.dtype], shape=(d, gates * hidden, size), low=-1, high=1, constant=constant)
    r = g.tensor([x.dtype], shape=(d, gates * hidden, hidden), low=-1, high=1, constant=constant)
    b = g.tensor([x.dtype], shape=(d, 2 * gates * hidden), low=-1, high=1, constant=constant) if g.flag() else None
    lens = g.given(g.rng.integers(1, seq + 1, batch).astype(np.int32)) if g.integer(0, 2) == 2 else None
    states = [g.tensor([x.dtype], shape=(d, batch, hidden), low=-1, high=1) if g.flag() else None
              for _ in range(2 if op == "LSTM" else 1)]
    inputs = [x, w, r, b, lens, *states]
    attrs: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM" and g.flag():
        inputs.append(g.tensor([x.dtype], shape=(d, 3 * hidden), low=-1, high=1, constant=True))
    if op == "LSTM" and g.rarely():
        attrs["input_forget"] = 1
    if op == "GRU":
        attrs["linear_before_reset"] = g.pick([None, 0, 1])
    if g.rarely():
        attrs["clip"] = 1.5
    if g.rarely():
        per = {"RNN": 1, "LSTM": 3, "GRU": 2}[op]
        attrs["activations"] = [g.pick(["Tanh", "Sigmoid", "Relu", "Softsign", "Softplus"]) for _ in range(per * d)]
    outputs = [[True, True, True], [True, True], [True], [False, True], [False, True, True]]
    wanted = g.pick(outputs)[:3 if op == "LSTM" else 2]
    return g.node(op, inputs, wanted, layout=layout or None, **attrs)


@family("Attention")
def attention(g: Draft, op: str) -> list[Tensor]:
    batch, groups, kv, size, value = g.integer(1, 2), g.integer(1, 2), g.integer(1, 2), g.integer(1, 4), g.integer(1, 4)
    heads, length, total = groups * kv, g.integer(1, 4), g.integer(1, 4)
    dtype = g.dtype([np.float32, np.float16])
    attrs: dict[str, object] = {"is_causal": g.pick([None, 0, 1]), "scale": g.pick([None, 0.7]), "softcap": g.pick([None, 2.0])}
    if g.flag():
        shapes = [(batch, heads, length, size), (batch, kv, total, size), (batch, kv, total, value)]
    else:
        shapes = [(batch, length, heads * size), (batch, total, kv * size), (batch, total, kv * value)]
        attrs |= {"q_num_heads": heads, "kv_num_heads": kv}
    past = g.integer(1, 3) if g.flag() else 0
    mask = None
    if g.flag():
        shape = g.broadcast((batch, heads, length, past + total), grow=False)
        shape = (*shape[:-1], past + total) if len(shape) > 1 else (length, past + total)
        mask = g.tensor([dtype], shape=shape) if g.flag() else g.given(np.tril(np.ones(shape, bool)))
    caches = [g.tensor([dtype], shape=(batch, kv, past, s)) for s in (size, value)] if past else []
    outputs = g.pick([[True], [True, True, True], [True, False, False, True], [True, True, True, True]])
    if past and len(outputs) == 1:
        outputs = [True, True, True]
    if len(outputs) == 4:
        attrs["qk_matmul_output_mode"] = g.pick([None, 0, 1, 2, 3])
    return g.node(op, [*(g.tensor([dtype], shape=s) for s in shapes), mask, *caches], outputs, **attrs)


@family("RotaryEmbedding")
def rotary(g: Draft, op: str) -> list[Tensor]:
    batch, heads, length, half = g.integer(1, 2), g.integer(1, 3), g.integer(1, 4), g.integer(1, 3)
    partial = g.integer(1, half) if g.rarely() else 0
    dtype = g.dtype([np.float32, np.float16])
    flat = g.flag()
    x = g.tensor([dtype], shape=(batch, length, heads * 2 * half) if flat else (batch, heads, length, 2 * half))
    with_ids = g.flag()
    width = partial or half
    caches = [g.tensor([dtype], shape=(6, width) if with_ids else (batch, length, width)) for _ in range(2)]
    ids = g.given(g.rng.integers(0, 6, (batch, length)).astype(np.int64)) if with_ids else None
    return g.node(op, [x, *caches, ids], interleaved=g.pick([None, 0, 1]), num_heads=heads if flat else None,
                  rotary_embedding_dim=2 * partial or None)
