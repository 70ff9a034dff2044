"""Sequence networks: encoders, taggers, a decoder with its cache, audio, indexing and control flow."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._higher_order_ops import scan, while_loop
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Bert(nn.Module):
    """An encoder after BERT: token types, a mask of 0 and 1 that becomes a bias, post-norm layers, a pooler."""

    def __init__(self, width: int = 16, heads: int = 4, words: int = 64, longest: int = 32) -> None:
        super().__init__()
        self.heads = heads
        self.word, self.place, self.kind = nn.Embedding(words, width), nn.Embedding(longest, width), nn.Embedding(2, width)
        self.norm, self.pool = nn.LayerNorm(width, 1e-12), nn.Linear(width, width)
        self.register_buffer("positions", torch.arange(longest)[None])
        self.layers = nn.ModuleList()
        for _ in range(2):
            parts = {n: nn.Linear(width, width) for n in ("query", "key", "value", "out")}
            parts.update(wide=nn.Linear(width, 40), narrow=nn.Linear(40, width))
            parts.update(first=nn.LayerNorm(width), second=nn.LayerNorm(width))
            self.layers.append(nn.ModuleDict(parts))

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.word(input_ids) + self.kind(token_type_ids) + self.place(self.positions[:, :input_ids.shape[1]])
        x = self.norm(x)
        bias = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for p in self.layers:
            q, k, v = (self.split(p[n](x)) for n in ("query", "key", "value"))
            scores = torch.matmul(q, k.transpose(-1, -2)) / (q.shape[-1] ** 0.5) + bias
            y = torch.matmul(F.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous().flatten(2)
            x = p["first"](x + p["out"](y))
            x = p["second"](x + p["narrow"](F.gelu(p["wide"](x))))
        return x, torch.tanh(self.pool(x[:, 0]))


class Tagger(nn.Module):
    """Words -> a recurrent stack of two layers, both ways -> a tag for each word, and the last states."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.word, self.tag = nn.Embedding(50, 8), nn.Linear(12, 5)
        self.rnn = kind(8, 6, 2, bidirectional=True, batch_first=True)

    def forward(self, words: Tensor):
        y, last = self.rnn(self.word(words))
        return self.tag(y).log_softmax(-1), last


class Stateful(nn.Module):
    """A stack of three layers with states in and out, time first, as in streaming recognisers."""

    def __init__(self, kind: type[nn.RNNBase], **options) -> None:
        super().__init__()
        self.rnn, self.out = kind(5, 6, 3, **options), nn.Linear(6, 4)

    def forward(self, x: Tensor, h: Tensor, c: Tensor | None = None):
        y, state = self.rnn(x, h if c is None else (h, c))
        return (self.out(y), *state) if isinstance(state, tuple) else (self.out(y), state)


class Packed(nn.Module):
    """Sequences of different lengths, packed."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(12, 5, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor):
        y, (h, c) = self.lstm(pack_padded_sequence(x, lengths, batch_first=True))
        z, last = self.gru(y)
        return pad_packed_sequence(z, batch_first=True)[0], h, c, last


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def turn(x: Tensor) -> Tensor:
    """The other half of a rotation."""
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Decoder(nn.Module):
    """Two layers after Llama: RMS norm, rotary positions, grouped queries, gated units; the cache comes in and goes out."""

    def __init__(self, words: int = 48, width: int = 16, heads: int = 4, shared: int = 2) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.word = nn.Embedding(words, width)
        self.layers = nn.ModuleList()
        for _ in range(2):
            parts = {"q": nn.Linear(width, width, bias=False), "k": nn.Linear(width, shared * self.size, bias=False),
                     "v": nn.Linear(width, shared * self.size, bias=False), "o": nn.Linear(width, width, bias=False),
                     "gate": nn.Linear(width, 32, bias=False), "up": nn.Linear(width, 32, bias=False),
                     "down": nn.Linear(32, width, bias=False), "before": RMSNorm(width), "after": RMSNorm(width)}
            self.layers.append(nn.ModuleDict(parts))
        self.norm = RMSNorm(width)
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, self.size, 2).float() / self.size))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, k0: Tensor, v0: Tensor, k1: Tensor, v1: Tensor):
        n, length = input_ids.shape
        past = k0.shape[2]
        positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, past:]
        angles = positions[:, :, None].float() * self.frequencies
        angles = torch.cat((angles, angles), -1)[:, None]
        cos, sin = angles.cos(), angles.sin()
        total = past + length
        causal = torch.full((length, total), torch.finfo(torch.float32).min).triu(past + 1)
        bias = causal[None, None] + (1.0 - attention_mask[:, None, None].float()) * -1e9
        x, cache = self.word(input_ids), []
        for p, (k_old, v_old) in zip(self.layers, ((k0, v0), (k1, v1))):
            y = p["before"](x)
            q = p["q"](y).view(n, length, self.heads, self.size).transpose(1, 2)
            k, v = (p[m](y).view(n, length, self.shared, self.size).transpose(1, 2) for m in ("k", "v"))
            q, k = q * cos + turn(q) * sin, k * cos + turn(k) * sin
            k, v = torch.cat((k_old, k), 2), torch.cat((v_old, v), 2)
            cache += [k, v]
            every = [t[:, :, None].expand(n, self.shared, 2, total, self.size).reshape(n, self.heads, total, self.size)
                     for t in (k, v)]
            y = F.scaled_dot_product_attention(q, *every, attn_mask=bias)
            x = x + p["o"](y.transpose(1, 2).reshape(n, length, -1))
            y = p["after"](x)
            x = x + p["down"](F.silu(p["gate"](y)) * p["up"](y))
        return (F.linear(self.norm(x), self.word.weight), *cache)


class Translator(nn.Module):
    """PyTorch's own decoder layer: causal self-attention, cross-attention, a padding mask."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.word = nn.Embedding(40, width)
        self.encoder = nn.Linear(width, width)
        self.decoder = nn.TransformerDecoderLayer(width, 3, 20, 0.0, batch_first=True)
        self.out = nn.Linear(width, 40)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        length = target.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        padding = source.eq(0)
        memory = self.encoder(self.word(source))
        return self.out(self.decoder(self.word(target), memory, tgt_mask=causal, memory_key_padding_mask=padding))


class Spectral(nn.Module):
    """Samples -> short-time spectrum -> mel-like bands in decibels -> gated 1-D convolutions -> samples."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.register_buffer("bands", torch.rand(17, 10))
        self.convs = nn.ModuleList(nn.utils.weight_norm(nn.Conv1d(10, 20, 3, padding=2 ** i, dilation=2 ** i))
                                   for i in range(3))
        self.up = nn.Sequential(nn.ConvTranspose1d(10, 4, 8, 4, 2), nn.BatchNorm1d(4), nn.Tanh())

    def spectrum(self, x: Tensor) -> Tensor:
        found = torch.stft(x, 32, 8, 32, self.window, center=False, return_complex=True)
        return torch.view_as_real(found).pow(2).sum(-1).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x - 0.97 * F.pad(x, (1, 0))[:, :-1]
        y = (self.spectrum(x) @ self.bands + 1e-6).log10().transpose(1, 2)
        y = (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True) + 1e-5)
        for conv in self.convs:
            a, b = conv(y).chunk(2, 1)
            y = y + torch.tanh(a) * torch.sigmoid(b)
        return F.adaptive_max_pool1d(self.up(y), 1).squeeze(-1)


class Framed(Spectral):
    """The spectrum without STFT: a convolution with the rows of the Fourier matrix."""

    def __init__(self) -> None:
        super().__init__()
        angle = 2 * torch.pi / 32 * torch.arange(17.0)[:, None] * torch.arange(32.0)
        self.register_buffer("rows", (torch.cat([angle.cos(), angle.sin()]) * self.window)[:, None])

    def spectrum(self, x: Tensor) -> Tensor:
        real, imaginary = F.conv1d(x[:, None], self.rows, stride=8).chunk(2, 1)
        return (real.pow(2) + imaginary.pow(2)).transpose(1, 2)


class Index(nn.Module):
    """Einsum, gathers, scatters, masks, sorting and the like."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 5))

    def forward(self, x: Tensor, at: Tensor):
        n, length = x.shape[:2]
        y = torch.einsum("bti,hij->bhtj", x, self.weight)
        y = torch.einsum("bhtj,bhsj->bts", y, y) / 10
        rows = torch.arange(n)[:, None]
        picked = x[rows, at]  # advanced indexing
        best, place = torch.topk(y.sum(1), 2, dim=-1)
        order = torch.argsort(picked[..., 0], dim=1, descending=True)
        ordered = picked.gather(1, order[..., None].expand(-1, -1, 4))
        z = x.clone()
        z[:, 1:, ::2] = 0.5
        z[rows, at] = picked * 2
        counts = torch.zeros(n, length).scatter_add(1, at, torch.ones_like(at, dtype=torch.float32))
        z = z.masked_fill((counts > 1)[..., None], -1.0).index_add(1, torch.tensor([0, 1]), x[:, :2])
        sums = torch.where(z > 0, z, torch.zeros_like(z)).cumsum(1).amax((0, 2))
        return y.tril(), best, place, ordered, z, sums, torch.nonzero(counts > 0), F.one_hot(at, 6), x.flip(1).roll(1, 1)


class Script(nn.Module):
    """Control flow that depends on data, a recurrent layer in a branch among it; compiled by torch.jit.script."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.big, self.small = nn.Linear(10, 6), nn.Linear(6, 3), nn.Linear(6, 3)
        self.gru = torch.jit.trace(nn.GRU(4, 6), torch.randn(5, 2, 4))

    def forward(self, x: Tensor, limit: Tensor):
        h = torch.zeros(x.shape[1], 6)
        seen = []
        for i in range(x.shape[0]):
            h = torch.tanh(self.cell(torch.cat([x[i], h], 1)))
            seen.append(h)
            if bool(h.abs().max() > limit):
                h = h * 0.5
        steps = 0
        total = h.sum()
        while bool(total.abs() > 0.01) and steps < 20:
            total = total / 2
            steps += 1
        if bool(h.mean() > 0):
            y = self.big(self.gru(x)[1][0] + h)
        else:
            y = torch.cat([self.small(h), h], 1)
        return y, torch.stack(seen), total, torch.tensor(steps)


class Control(nn.Module):
    """The same in the operators for control flow that the newer exporter takes: scan, while_loop and cond."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.big, self.small = nn.Linear(10, 6), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor, limit: Tensor):
        def step(h: Tensor, frame: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.tanh(self.cell(torch.cat([frame, h], 1)))
            return h * 0.5, h.clone()

        def going(total: Tensor, steps: Tensor) -> Tensor:
            return (total.abs() > 0.01) & (steps < 20)

        def halve(total: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
            return total / 2, steps + 1

        h, seen = scan(step, x.new_zeros(x.shape[1], 6), x)
        total, steps = while_loop(going, halve, (h.sum(), torch.tensor(0)))
        y = torch.cond(h.mean() > limit, lambda h: self.big(h) + 1, lambda h: self.small(h.abs()), (h,))
        return y, seen, total, steps
