// Convolution on the channel-blocked layout: register tiles of output pixels times two blocks of output channels, over all of the
// kernel and all input channels, without an im2col buffer. A 1x1 kernel with stride 1 is the same over one long row.
#pragma once
#include "conv_shape.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

constexpr int kPixels = MNN_VLEN == 16 ? 14 : 6;  // pixels of a tile: kPixels * 2 accumulators fill the registers

struct Conv {
  Window g;
  int64_t group, ic, oc;     // channels of a group
  int64_t in_block;          // channels that lie together in the input: kLanes, or 1 for a plain input
  int64_t ph, pw;            // size of the padded input
  bool padded;               // the input is copied to scratch with its padding
  bool flat;                 // 1x1, stride 1: rows are joined to one
  float *weight, *bias;
  Clamp clamp;
};

// Weights [oc pairs][ic][kh][kw] -> for each pair of output blocks: input block, kh, kw, channel in block, 2 * kLanes outputs.
static void conv_pack(const float *w, float *to, const Conv &s) {
  const Window &g = s.g;
  const int64_t pairs = ceil_div(s.oc, 2 * kLanes), area = g.kh * g.kw;
  for (int64_t p = 0; p < pairs; ++p)
    for (int64_t ib = 0; ib < s.ic; ib += s.in_block)
      for (int64_t k = 0; k < area; ++k)
        for (int64_t c = ib; c < min64(ib + s.in_block, s.ic); ++c, to += 2 * kLanes)
          for (int64_t o = 0; o < 2 * kLanes; ++o) {
            const int64_t oc = p * 2 * kLanes + o;
            to[o] = oc < s.oc ? w[(oc * s.ic + c) * area + k] : 0;
          }
}

static int conv_prepare(mnn_call *c) {
  Conv *s = new_state<Conv>(c);
  if (!s) return no_memory(c);
  if (!conv_window(c, s->g)) return c->fail(c, "not a 2-D convolution");
  if (c->n_in > 3) return c->fail(c, "more than three inputs");
  if (!present(c, 1) || !c->in[1].data || (present(c, 2) && !c->in[2].data)) return c->fail(c, "the weights are not constant");
  Window &g = s->g;
  const mnn_tensor &w = c->in[1];
  if (w.rank != 4) return c->fail(c, "the weight is not 4-D");
  s->ic = w.shape[1];
  s->group = s->ic ? g.c / s->ic : 1;
  if (s->group < 1 || s->group * s->ic != g.c || g.oc % s->group) return c->fail(c, "channels do not fit the groups");
  s->oc = g.oc / s->group;
  s->in_block = c->in[0].layout == MNN_BLOCKED ? kLanes : 1;
  if (s->in_block == 1 && g.c > 4) return c->fail(c, "a plain input of many channels");
  if (s->group > 1 && (s->ic % kLanes || s->oc % (2 * kLanes))) return c->fail(c, "groups that are no whole blocks");
  s->clamp = conv_clamp(c);
  const int64_t need_h = (g.oh - 1) * g.sh + (g.kh - 1) * g.dh + 1, need_w = (g.ow - 1) * g.sw + (g.kw - 1) * g.dw + 1;
  s->padded = g.top > 0 || g.left > 0 || need_h > g.h || need_w > g.w;
  s->ph = s->padded ? max64(need_h, 1) : g.h, s->pw = s->padded ? max64(need_w, 1) : g.w;
  s->flat = !s->padded && g.kh * g.kw == 1 && g.sh == 1 && g.sw == 1;
  if (s->padded) c->scratch_bytes = size_t(g.n * ceil_div(g.c, s->in_block) * s->in_block * s->ph * s->pw) * 4;
  const int64_t pairs = ceil_div(s->oc, 2 * kLanes), one = pairs * 2 * kLanes * s->ic * g.kh * g.kw;
  int fresh = 0;
  s->weight = static_cast<float *>(c->shared(c, 1, s->in_block == 1 ? "conv_plain" : "conv_blocked", size_t(one * s->group) * 4, &fresh));
  s->bias = static_cast<float *>(c->alloc(c, size_t(pairs * 2 * kLanes * s->group) * 4));
  if (!s->weight || !s->bias) return no_memory(c);
  for (int64_t i = 0; i < s->group; ++i) {
    if (fresh) conv_pack(in<float>(c, 1) + i * s->oc * s->ic * g.kh * g.kw, s->weight + i * one, *s);
    if (present(c, 2)) memcpy(s->bias + i * pairs * 2 * kLanes, in<float>(c, 2) + i * s->oc, size_t(s->oc) * 4);
  }
  return 0;
}

// Copies an image with its padding to scratch; one item is one block of one image.
static void pad_blocks(const mnn_call *c, const Conv &s, float *to) {
  const Window &g = s.g;
  const int64_t blocks = ceil_div(g.c, s.in_block), b = s.in_block;
  parallel(c, g.n * blocks, grain_for(s.ph * s.pw * b), [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t i = begin; i < end; ++i) {
      const float *from = in<float>(c, 0) + i * g.h * g.w * b;
      float *at = to + i * s.ph * s.pw * b;
      const int64_t width = min64(g.w, s.pw - g.left);
      for (int64_t y = 0; y < s.ph; ++y, at += s.pw * b) {
        const int64_t row = y - g.top;
        if (row < 0 || row >= g.h || width <= 0) {
          memset(at, 0, size_t(s.pw * b) * 4);
          continue;
        }
        memset(at, 0, size_t(g.left * b) * 4);
        memcpy(at + g.left * b, from + row * g.w * b, size_t(width * b) * 4);
        memset(at + (g.left + width) * b, 0, size_t((s.pw - g.left - width) * b) * 4);
      }
    }
  });
}

struct ConvTile {
  const float *x, *w;
  int64_t in_blocks, in_block, last;      // input blocks, channels in one, and in the last
  int64_t block_step, row_step, pixel_step, dx;  // of the input, in floats: next block, kernel row, output pixel, kernel column
  int64_t kh, kw;
};

template <int P, int B> static inline void conv_tile(const ConvTile &t, vf acc[P][B]) {
  const float *w = t.w;
  MNN_UNROLL for (int i = 0; i < P; ++i) MNN_UNROLL for (int j = 0; j < B; ++j) acc[i][j] = vf{};
  for (int64_t ib = 0; ib < t.in_blocks; ++ib) {
    const int64_t channels = ib + 1 == t.in_blocks ? t.last : t.in_block;
    for (int64_t y = 0; y < t.kh; ++y)
      for (int64_t x = 0; x < t.kw; ++x) {
        const float *from = t.x + ib * t.block_step + y * t.row_step + x * t.dx;
        for (int64_t c = 0; c < channels; ++c, ++from, w += 2 * kLanes) {
          vf b[B];
          MNN_UNROLL for (int j = 0; j < B; ++j) b[j] = load(w + j * kLanes);
          MNN_UNROLL for (int i = 0; i < P; ++i) {
            const vf v = dup(from[i * t.pixel_step]);
            MNN_UNROLL for (int j = 0; j < B; ++j) acc[i][j] = fma(v, b[j], acc[i][j]);
          }
        }
      }
  }
}

template <int P, int B>
static inline void conv_store(const ConvTile &t, float *y, int64_t y_block, const float *bias, vf low, vf high) {
  vf acc[P][B];
  conv_tile<P, B>(t, acc);
  MNN_UNROLL for (int j = 0; j < B; ++j) {
    const vf b = load(bias + j * kLanes);
    MNN_UNROLL for (int i = 0; i < P; ++i) store(y + j * y_block + i * kLanes, clamp(acc[i][j] + b, low, high));
  }
}
template <int P, int B>
static inline void conv_rest(int64_t pixels, const ConvTile &t, float *y, int64_t y_block, const float *bias, vf low, vf high) {
  if constexpr (P > 0) {
    if (pixels == P) conv_store<P, B>(t, y, y_block, bias, low, high);
    else conv_rest<P - 1, B>(pixels, t, y, y_block, bias, low, high);
  }
}
template <int B>
static inline void conv_row(ConvTile t, int64_t pixels, float *y, int64_t y_block, const float *bias, vf low, vf high) {
  for (; pixels >= kPixels; pixels -= kPixels, y += kPixels * kLanes, t.x += kPixels * t.pixel_step)
    conv_store<kPixels, B>(t, y, y_block, bias, low, high);
  conv_rest<kPixels - 1, B>(pixels, t, y, y_block, bias, low, high);
}

static int conv_run(const mnn_call *c) {
  const Conv &s = state<Conv>(c);
  const Window &g = s.g;
  const float *x = in<float>(c, 0);
  if (s.padded) pad_blocks(c, s, static_cast<float *>(c->scratch)), x = static_cast<const float *>(c->scratch);
  const int64_t plane = s.ph * s.pw * s.in_block, in_blocks = ceil_div(s.ic, s.in_block);
  const int64_t image = ceil_div(g.c, s.in_block) * plane;
  const int64_t pairs = ceil_div(s.oc, 2 * kLanes), out_blocks = ceil_div(g.oc, kLanes);
  const int64_t rows = s.flat ? 1 : g.oh, width = s.flat ? g.oh * g.ow : g.ow;
  const int64_t piece = kPixels * 8, pieces = ceil_div(width, piece);
  const int64_t one = pairs * 2 * kLanes * s.ic * g.kh * g.kw;
  const vf low = dup(s.clamp.low), high = dup(s.clamp.high);
  // Weights of one pair stay in cache over all rows of an image.
  parallel(c, g.n * s.group * pairs * rows * pieces, grain_for(min64(piece, width) * s.ic * g.kh * g.kw * 2), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      int64_t rest = i;
      const int64_t part = rest % pieces; rest /= pieces;
      const int64_t row = rest % rows; rest /= rows;
      const int64_t pair = rest % pairs; rest /= pairs;
      const int64_t group = rest % s.group, n = rest / s.group;
      const int64_t first = part * piece;
      ConvTile t;
      t.x = x + n * image + group * in_blocks * plane + (row * g.sh * s.pw + first * g.sw) * s.in_block;
      t.w = s.weight + group * one + pair * 2 * kLanes * s.ic * g.kh * g.kw;
      t.in_blocks = in_blocks, t.in_block = s.in_block, t.last = s.ic - (in_blocks - 1) * s.in_block;
      t.block_step = plane, t.row_step = g.dh * s.pw * s.in_block, t.pixel_step = g.sw * s.in_block, t.dx = g.dw * s.in_block;
      t.kh = g.kh, t.kw = g.kw;
      const int64_t block = group * (s.oc / kLanes) + pair * 2, y_block = g.oh * g.ow * kLanes;
      float *y = out<float>(c, 0) + (n * out_blocks + block) * y_block + (row * g.ow + first) * kLanes;
      const float *bias = s.bias + (group * pairs + pair) * 2 * kLanes;
      const int64_t pixels = min64(piece, width - first);
      if (s.oc - pair * 2 * kLanes > kLanes) conv_row<2>(t, pixels, y, y_block, bias, low, high);
      else conv_row<1>(t, pixels, y, y_block, bias, low, high);
    }
  });
  return 0;
}

// Any groups, plain layout: one output row at a time, a vector of pixels where they lie together. For odd shapes only.
struct ConvPlain {
  Window g;
  int64_t group, ic, oc;
  Clamp clamp;
};
static int conv_plain_prepare(mnn_call *c) {
  ConvPlain *s = new_state<ConvPlain>(c);
  if (!s) return no_memory(c);
  if (!conv_window(c, s->g) || c->n_in > 3 || c->in[1].rank != 4) return c->fail(c, "not a 2-D convolution");
  s->ic = c->in[1].shape[1];
  s->group = s->ic ? s->g.c / s->ic : 1;
  if (s->group < 1 || s->group * s->ic != s->g.c || s->g.oc % s->group) return c->fail(c, "channels do not fit the groups");
  s->oc = s->g.oc / s->group;
  s->clamp = conv_clamp(c);
  return 0;
}
static int conv_plain_run(const mnn_call *c) {
  const ConvPlain &s = state<ConvPlain>(c);
  const Window &g = s.g;
  parallel(c, g.n * g.oc * g.oh, grain_for(g.ow * s.ic * g.kh * g.kw * 4), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t row = i % g.oh, oc = i / g.oh % g.oc, n = i / g.oh / g.oc, group = oc / s.oc;
      float *y = out<float>(c, 0) + i * g.ow;
      const float bias = present(c, 2) ? in<float>(c, 2)[oc] : 0;
      for (int64_t x = 0; x < g.ow; ++x) y[x] = bias;
      for (int64_t ic = 0; ic < s.ic; ++ic)
        for (int64_t ky = 0; ky < g.kh; ++ky) {
          const int64_t iy = row * g.sh - g.top + ky * g.dh;
          if (iy < 0 || iy >= g.h) continue;
          const float *from = in<float>(c, 0) + ((n * g.c + group * s.ic + ic) * g.h + iy) * g.w;
          for (int64_t kx = 0; kx < g.kw; ++kx) {
            const float w = in<float>(c, 1)[((oc * s.ic + ic) * g.kh + ky) * g.kw + kx];
            const int64_t shift = kx * g.dw - g.left;
            const int64_t first = max64(0, ceil_div(max64(0, -shift), g.sw)), last = shift >= g.w ? 0 : min64(g.ow, (g.w - 1 - shift) / g.sw + 1);
            for (int64_t x = first; x < last; ++x) y[x] += w * from[x * g.sw + shift];
          }
        }
      for (int64_t x = 0; x < g.ow; ++x) y[x] = y[x] < s.clamp.low ? s.clamp.low : y[x] > s.clamp.high ? s.clamp.high : y[x];
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn
