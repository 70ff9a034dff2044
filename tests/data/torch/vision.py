"""Image networks in the styles that people export: small widths, the usual layers in the usual order."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def conv_bn(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1,
            act: nn.Module | None = None) -> nn.Sequential:
    """Convolution without bias, batch norm and an activation."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), act or nn.Identity())


class Basic(nn.Module):
    """The residual block of ResNet-18, with a projection where the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.a, self.b = conv_bn(inputs, outputs, 3, stride, act=nn.ReLU(inplace=True)), conv_bn(outputs, outputs, 3)
        self.skip = conv_bn(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.b(self.a(x)) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 8, 7, 2, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1))
        self.body = nn.Sequential(Basic(8, 8, 1), Basic(8, 12, 2), Basic(12, 16, 2))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.body(self.stem(x)), 1), 1))


class Excite(nn.Module):
    """Squeeze and excitation as in MobileNetV3."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    """Inverted residual: expand, depthwise, excite, project."""

    def __init__(self, inputs: int, wide: int, outputs: int, kernel: int, stride: int, act: type[nn.Module],
                 excite: bool) -> None:
        super().__init__()
        self.residual = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(
            conv_bn(inputs, wide, 1, act=act()), conv_bn(wide, wide, kernel, stride, wide, act()),
            Excite(wide) if excite else nn.Identity(), conv_bn(wide, outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_bn(3, 8, 3, 2, act=nn.Hardswish())
        self.body = nn.Sequential(Inverted(8, 16, 8, 3, 1, nn.ReLU6, False), Inverted(8, 24, 12, 5, 2, nn.Hardswish, True),
                                  Inverted(12, 24, 12, 3, 1, nn.SiLU, True))
        self.head = nn.Sequential(nn.Linear(12, 20), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(20, 7))

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(self.head(self.body(self.stem(x)).mean((2, 3))), dim=-1)


class UNet(nn.Module):
    """One level goes up by a transposed convolution, the other by interpolation to the size of the skip (odd sizes too)."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (self.double(i, o) for i, o in ((1, 6), (6, 12), (12, 16)))
        self.up_b, self.up_a = nn.ConvTranspose2d(16, 12, 2, 2), nn.Conv2d(12, 6, 1)
        self.back_b, self.back_a, self.head = self.double(24, 12), self.double(12, 6), nn.Conv2d(6, 2, 1)

    @staticmethod
    def double(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(conv_bn(inputs, outputs, 3, act=nn.LeakyReLU(0.1)),
                             conv_bn(outputs, outputs, 3, act=nn.PReLU(outputs)))

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        up = self.up_b(self.c(F.max_pool2d(b, 2)))
        high, wide = b.shape[2] - up.shape[2], b.shape[3] - up.shape[3]
        b = self.back_b(torch.cat([b, F.pad(up, [0, wide, 0, high])], 1))
        up = self.up_a(F.interpolate(b, size=a.shape[2:], mode="bilinear", align_corners=False))
        return torch.sigmoid(self.head(self.back_a(torch.cat([up, a], 1))))


class Block(nn.Module):
    """An encoder layer as in timm: one projection to queries, keys and values; layer scale."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        qkv = self.qkv(self.before(x)).reshape(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = x + self.scale * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, width))
        return x + self.narrow(F.gelu(self.wide(self.after(x)), approximate="tanh"))


class ViT(nn.Module):
    """Patches, a class token, interpolated positions, two encoder layers."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, width, 4, 4))
        self.layers = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x)
        x = x + F.interpolate(self.position, size=x.shape[2:], mode="bilinear", align_corners=True)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x.flatten(2).transpose(1, 2)], 1)
        return self.head(self.norm(self.layers(x))[:, 0])


class Window(nn.Module):
    """Swin's attention in shifted windows: roll, partition, relative positions, reverse; then patches are merged."""

    def __init__(self, width: int = 12, heads: int = 3, window: int = 4) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.patch, self.norm = nn.Conv2d(3, width, 2, 2), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        offset = (at[:, :, None] - at[:, None] + window - 1).permute(1, 2, 0)
        self.register_buffer("index", offset[..., 0] * (2 * window - 1) + offset[..., 1])
        self.merge, self.head = nn.Linear(4 * width, 2 * width, bias=False), nn.Linear(2 * width, 6)

    def forward(self, x: Tensor) -> Tensor:
        w, heads = self.window, self.heads
        x = self.norm(self.patch(x).permute(0, 2, 3, 1))
        n, high, wide, c = x.shape
        y = torch.roll(x, (-w // 2, -w // 2), (1, 2))
        y = y.view(n, high // w, w, wide // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)
        q, k, v = self.qkv(y).reshape(-1, w * w, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
        scores = q * (c // heads) ** -0.5 @ k.transpose(-2, -1) + self.table[self.index].permute(2, 0, 1)
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, w * w, c))
        y = y.view(n, high // w, wide // w, w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(n, high, wide, c)
        x = x + torch.roll(y, (w // 2, w // 2), (1, 2))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(self.merge(x).mean((1, 2)))


class Detector(nn.Module):
    """A pyramid of two levels, a decoupled head, decoding of boxes on the grid, a score threshold and suppression."""

    def __init__(self, nms) -> None:
        super().__init__()
        self.nms, self.classes = nms, 3
        self.one = nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.SiLU()), conv_bn(8, 12, 3, 2, act=nn.SiLU()))
        self.two, self.lateral = conv_bn(12, 16, 3, 2, act=nn.SiLU()), nn.Conv2d(16, 12, 1)
        self.heads = nn.ModuleList(nn.Conv2d(c, 5 + self.classes, 1) for c in (12, 16))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one = self.one(x)
        two = self.two(one)
        one = one + F.interpolate(self.lateral(two), size=one.shape[2:], mode="nearest")
        found = [self.decode(head(level), stride) for head, level, stride in zip(self.heads, (one, two), (4.0, 8.0))]
        boxes, scores = (torch.cat(part, 1)[0] for part in zip(*found))
        best, label = scores.max(1)
        keep = best > 0.3
        boxes, best, label = boxes[keep], best[keep], label[keep]
        kept = self.nms(boxes + label[:, None].to(boxes.dtype) * 1000.0, best, 0.5)[:20]
        return boxes[kept], best[kept], label[kept]

    def decode(self, y: Tensor, stride: float) -> tuple[Tensor, Tensor]:
        high, wide = y.shape[2], y.shape[3]
        grid = torch.stack(torch.meshgrid(torch.arange(wide), torch.arange(high), indexing="xy"), -1).reshape(1, -1, 2)
        y = y.flatten(2).permute(0, 2, 1)
        center = (torch.sigmoid(y[..., :2]) + grid) * stride
        half = torch.exp(y[..., 2:4]) * stride * 1.5
        return torch.cat([center - half, center + half], -1), torch.sigmoid(y[..., 4:5]) * torch.softmax(y[..., 5:], -1) * 2


class Warp(nn.Module):
    """A spatial transformer, then a warp by a flow field as in optical flow networks."""

    def __init__(self) -> None:
        super().__init__()
        self.theta = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 6))
        self.flow = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        theta = self.theta(x).view(n, 2, 3) * 0.2 + torch.tensor([[1.0, 0, 0], [0, 1, 0]])
        down, across = torch.meshgrid(torch.linspace(-1, 1, 9), torch.linspace(-1, 1, 11), indexing="ij")
        points = torch.stack([across, down, torch.ones_like(down)], -1).view(1, -1, 3)
        x = F.grid_sample(x, (points @ theta.transpose(1, 2)).view(n, 9, 11, 2), align_corners=False)
        flow = self.flow(x).permute(0, 2, 3, 1)
        base = torch.stack([across, down], -1)
        first = F.grid_sample(x, base + flow, mode="bilinear", padding_mode="border", align_corners=True)
        second = F.grid_sample(x, base - flow, mode="nearest", padding_mode="reflection", align_corners=False)
        return torch.cat([first, second], 1)


class Styler(nn.Module):
    """What generative image networks use: reflection pads, instance and group norm, pixel shuffle, gated units, folds."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.ReflectionPad2d(2), nn.Conv2d(3, 8, 5), nn.InstanceNorm2d(8, affine=True), nn.ELU())
        self.down = nn.Sequential(nn.ReplicationPad2d(1), nn.Conv2d(8, 12, 4, 2), nn.GroupNorm(3, 12), nn.Mish())
        self.gate = nn.Conv2d(12, 24, 3, padding=2, dilation=2, groups=2)
        self.up = nn.Sequential(nn.ConvTranspose2d(12, 8, 3, 2, 1, 1, groups=2), nn.LocalResponseNorm(3), nn.CELU(0.7))
        self.shuffle = nn.Sequential(nn.Conv2d(8, 12, 1), nn.PixelShuffle(2), nn.Softplus())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        z = self.down(y)
        z = z + F.glu(self.gate(z), 1)
        y = self.shuffle(self.up(z))
        y = F.interpolate(F.pixel_unshuffle(y, 2), scale_factor=1.5, mode="bicubic", align_corners=False)
        patches = F.unfold(x, 3, padding=1, stride=2)
        return y, patches.std(-1).log_softmax(-1)


class Video(nn.Module):
    """3-D convolutions over clips."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv3d(2, 6, 3, (1, 2, 2), 1, bias=False), nn.BatchNorm3d(6), nn.ReLU(),
                                    nn.MaxPool3d((1, 2, 2)), nn.Conv3d(6, 8, (3, 1, 1), padding=(1, 0, 0)), nn.ReLU(),
                                    nn.AvgPool3d((2, 1, 1)))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x).mean((2, 3, 4)))
