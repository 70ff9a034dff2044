// int8.Conv on the channel-blocked layout: tiles of output pixels times two blocks of output channels, without an im2col buffer, as
// in conv.h. Depthwise: one vector is one pixel of kLanes channels, multiplied as floats, which hold the sums exactly.
#pragma once
#include "conv_shape.h"
#include "int8_tile.h"

namespace mnn {
namespace MNN_ISA {

struct ByteConv {
  Window g;
  int64_t group, ic, oc;  // channels of a group
  int64_t block, units;   // channels that lie together in the left side, and their units
  int64_t ph, pw;         // size of the padded input
  bool direct;            // the input is read where it lies; else from a copy of units, with its padding
  bool flat;              // 1x1, stride 1: rows are joined to one
  int32_t *weight, *sums;
  Finish finish;
};

// Weights [oc][ic][kh][kw] -> for each pair of output blocks: input block, kh, kw, unit, 2 * kLanes outputs; and their sums.
static void byte_conv_pack(const int8_t *w, int32_t *packed, int32_t *sums, const ByteConv &s) {
  const int64_t area = s.g.kh * s.g.kw;
  unit_right *to = reinterpret_cast<unit_right *>(packed);
  for (int64_t p = 0; p < ceil_div(s.oc, kBytePanel); ++p)
    for (int64_t ib = 0; ib < s.ic; ib += s.block)
      for (int64_t k = 0; k < area; ++k)
        for (int64_t u = 0; u < s.units; ++u)
          for (int64_t o = p * kBytePanel; o < (p + 1) * kBytePanel; ++o)
            for (int64_t e = 0; e < kUnit; ++e, ++to) {
              const int64_t channel = ib + u * kUnit + e;
              *to = o < s.oc && channel < s.ic ? w[(o * s.ic + channel) * area + k] : int8_t(0);
              sums[o] += *to;
            }
}

static const char *byte_conv_types(const mnn_call *c) {
  const mnn_tensor &w = c->in[1];
  if (!is_byte(c->in[0])) return "not a convolution of bytes";
  if (!w.data || w.rank != 4 || !is_byte(w) || w.dtype.code != MNN_INT) return "the weight is no constant of int8";
  return nullptr;
}

static int byte_conv_prepare(mnn_call *c) {
  ByteConv *s = new_state<ByteConv>(c);
  if (!s) return no_memory(c);
  if (!conv_window(c, s->g) || c->in[0].rank != 4) return c->fail(c, "not a 2-D convolution");
  if (const char *why = byte_conv_types(c)) return c->fail(c, why);
  if (const char *why = finish_of(c, 3, s->finish)) return c->fail(c, why);
  Window &g = s->g;
  s->ic = c->in[1].shape[1];
  s->group = s->ic ? g.c / s->ic : 1;
  if (s->group < 1 || s->group * s->ic != g.c || g.oc % s->group) return c->fail(c, "channels do not fit the groups");
  s->oc = g.oc / s->group;
  const bool blocked = c->in[0].layout == MNN_BLOCKED;
  if (!blocked && g.c > 4) return c->fail(c, "a plain input of many channels");
  if (s->group > 1 && (s->ic % kLanes || s->oc % kBytePanel)) return c->fail(c, "groups that are no whole blocks");
  s->block = blocked ? kLanes : 4, s->units = s->block / kUnit;
  const int64_t need_h = (g.oh - 1) * g.sh + (g.kh - 1) * g.dh + 1, need_w = (g.ow - 1) * g.sw + (g.kw - 1) * g.dw + 1;
  const bool padded = g.top > 0 || g.left > 0 || need_h > g.h || need_w > g.w;
  s->ph = padded ? max64(need_h, 1) : g.h, s->pw = padded ? max64(need_w, 1) : g.w;
  s->direct = blocked && kUnit == 4 && !padded && c->in[0].dtype.code == MNN_UINT;
  s->flat = !padded && g.kh * g.kw == 1 && g.sh == 1 && g.sw == 1;
  const int64_t columns = ceil_div(s->oc, kBytePanel) * kBytePanel, one = columns * ceil_div(s->ic, s->block) * s->units * g.kh * g.kw;
  c->scratch_bytes = columns_bytes(columns * s->group);
  if (!s->direct) c->scratch_bytes += size_t(g.n * ceil_div(g.c, s->block) * s->units * s->ph * s->pw) * 4;
  int fresh = 0;
  const char *key = kUnit == 4 ? (blocked ? "conv4_blocked" : "conv4_plain") : (blocked ? "conv2_blocked" : "conv2_plain");
  s->weight = static_cast<int32_t *>(c->shared(c, 1, key, size_t((one + columns) * s->group) * 4, &fresh));
  if (!s->weight) return no_memory(c);
  s->sums = s->weight + one * s->group;
  if (fresh)
    for (int64_t i = 0; i < s->group; ++i)
      byte_conv_pack(in<int8_t>(c, 1) + i * s->oc * s->ic * g.kh * g.kw, s->weight + i * one, s->sums + i * columns, *s);
  return 0;
}

// A row of pixels, B bytes each, as units.
template <int64_t B> static inline void wide_pixels(const uint8_t *from, int64_t pixels, uint8_t flip, unit_left *to) {
  for (int64_t i = 0; i < pixels * B; ++i) to[i] = unit_left(uint8_t(from[i] ^ flip));
}

// Copies the input as units, with its padding of zero points; one item is a row of one block of one image.
static void byte_conv_copy(const mnn_call *c, const ByteConv &s, int32_t zero, int32_t *to) {
  const Window &g = s.g;
  const int64_t blocks = ceil_div(g.c, s.block), length = s.pw * s.block;
  const uint8_t flip = uint8_t(to_unsigned(c->in[0]));
  const bool blocked = c->in[0].layout == MNN_BLOCKED;
  parallel(c, g.n * blocks * s.ph, grain_for(length), [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t i = begin; i < end; ++i) {
      unit_left *at = reinterpret_cast<unit_left *>(to) + i * length;
      const int64_t row = i % s.ph - g.top, block = i / s.ph, width = min64(g.w, s.pw - g.left);
      const bool outside = row < 0 || row >= g.h || width <= 0;
      const int64_t first = outside ? length : g.left * s.block, last = outside ? length : (g.left + width) * s.block;
      for (int64_t k = 0; k < first; ++k) at[k] = unit_left(zero);
      for (int64_t k = last; k < length; ++k) at[k] = unit_left(zero);
      if (outside) continue;
      if (blocked) {
        wide_pixels<kLanes>(in<uint8_t>(c, 0) + (block * g.h + row) * g.w * kLanes, width, flip, at + first);
        continue;
      }
      for (int64_t channel = 0; channel < 4; ++channel) {
        const uint8_t *from = in<uint8_t>(c, 0) + ((block * g.c + channel) * g.h + row) * g.w;
        for (int64_t x = 0; x < width; ++x) at[first + x * 4 + channel] = channel < g.c ? unit_left(uint8_t(from[x] ^ flip)) : unit_left(0);
      }
    }
  });
}

template <int P, int B, class T>
static inline void byte_conv_store(const ByteTile &t, const Finish &f, T *y, int64_t y_block, const Columns &columns) {
  vi acc[P][B];
  byte_tile<P, B>(t, acc);
  MNN_UNROLL for (int j = 0; j < B; ++j) {
    const vi bias = load(columns.bias + j * kLanes);
    const vf scale = load(columns.scale + j * kLanes), shift = load(columns.shift + j * kLanes);
    MNN_UNROLL for (int i = 0; i < P; ++i) put(f, y + j * y_block + i * kLanes, acc[i][j] + bias, scale, shift, kLanes);
  }
}
template <int P, int B, class T>
static inline void byte_conv_rest(int64_t pixels, const ByteTile &t, const Finish &f, T *y, int64_t y_block, const Columns &columns) {
  if constexpr (P > 0) {
    if (pixels == P) byte_conv_store<P, B>(t, f, y, y_block, columns);
    else byte_conv_rest<P - 1, B>(pixels, t, f, y, y_block, columns);
  }
}
template <int B, class T>
static inline void byte_conv_row(ByteTile t, int64_t pixels, const Finish &f, T *y, int64_t y_block, const Columns &columns) {
  for (; pixels >= kByteRows; pixels -= kByteRows, y += kByteRows * kLanes, t.a += kByteRows * t.pixel_step)
    byte_conv_store<kByteRows, B>(t, f, y, y_block, columns);
  byte_conv_rest<kByteRows - 1, B>(pixels, t, f, y, y_block, columns);
}

static int byte_conv_run(const mnn_call *c) {
  const ByteConv &s = state<ByteConv>(c);
  const Window &g = s.g;
  const int64_t pairs = ceil_div(s.oc, kBytePanel), per_group = pairs * kBytePanel;
  const Columns columns = columns_at(c->scratch, per_group * s.group);
  const int32_t zero = (present(c, 2) ? byte_at(c->in[2], 0) : 0) + to_unsigned(c->in[0]);
  for (int64_t group = 0; group < s.group; ++group)
    for (int64_t o = 0; o < s.oc; ++o) {
      const int64_t at = group * per_group + o;
      fill_column(c, s.finish, 3, group * s.oc + o, columns, at, int32_t(0u - uint32_t(zero) * uint32_t(s.sums[at])));
    }
  const int32_t *x = in<int32_t>(c, 0);
  if (!s.direct) {
    int32_t *copy = reinterpret_cast<int32_t *>(static_cast<char *>(c->scratch) + columns_bytes(per_group * s.group));
    byte_conv_copy(c, s, zero, copy);
    x = copy;
  }
  const int64_t plane = s.ph * s.pw * s.units, in_blocks = ceil_div(s.ic, s.block), image = ceil_div(g.c, s.block) * plane;
  const int64_t out_blocks = ceil_div(g.oc, kLanes), one = per_group * in_blocks * s.units * g.kh * g.kw;
  const int64_t rows = s.flat ? 1 : g.oh, width = s.flat ? g.oh * g.ow : g.ow;
  const int64_t piece = kByteRows * 8, pieces = ceil_div(width, piece);
  for_type(s.finish.made, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const int64_t cost = min64(piece, width) * in_blocks * s.units * g.kh * g.kw * 2;
    parallel(c, g.n * s.group * pairs * rows * pieces, grain_for(cost), [&](int64_t b, int64_t e, int32_t) {
      for (int64_t i = b; i < e; ++i) {
        int64_t rest = i;
        const int64_t part = rest % pieces; rest /= pieces;
        const int64_t row = rest % rows; rest /= rows;
        const int64_t pair = rest % pairs; rest /= pairs;
        const int64_t group = rest % s.group, n = rest / s.group, first = part * piece;
        const int32_t *from = x + n * image + group * in_blocks * plane + (row * g.sh * s.pw + first * g.sw) * s.units;
        const ByteTile t = {from, s.weight + group * one + pair * (one / pairs), in_blocks, s.units, plane, g.dh * s.pw * s.units,
                            g.dw * s.units, g.sw * s.units, g.kh, g.kw};
        const int64_t block = group * (s.oc / kLanes) + pair * 2, y_block = g.oh * g.ow * kLanes;
        T *y = out<T>(c, 0) + (n * out_blocks + block) * y_block + (row * g.ow + first) * kLanes;
        const int64_t at = group * per_group + pair * kBytePanel, pixels = min64(piece, width - first);
        const Columns mine = {columns.bias + at, columns.scale + at, columns.shift + at};
        if (s.oc - pair * kBytePanel > kLanes) byte_conv_row<2>(t, pixels, s.finish, y, y_block, mine);
        else byte_conv_row<1>(t, pixels, s.finish, y, y_block, mine);
      }
    });
  });
  return 0;
}

struct ByteDepthwise {
  Window g;
  float *weight;  // [blocks][kh][kw][kLanes]
  Finish finish;
};

static int byte_depthwise_prepare(mnn_call *c) {
  ByteDepthwise *s = new_state<ByteDepthwise>(c);
  if (!s) return no_memory(c);
  if (!conv_window(c, s->g) || c->in[0].rank != 4) return c->fail(c, "not a 2-D convolution");
  if (const char *why = byte_conv_types(c)) return c->fail(c, why);
  if (const char *why = finish_of(c, 3, s->finish)) return c->fail(c, why);
  const Window &g = s->g;
  const int64_t area = g.kh * g.kw, blocks = ceil_div(g.c, kLanes);
  if (g.oc != g.c || c->in[1].shape[1] != 1 || attr_int(c, "group", 1) != g.c) return c->fail(c, "not depthwise");
  if (area > 256) return c->fail(c, "a kernel whose sums floats may not hold");
  int fresh = 0;
  s->weight = static_cast<float *>(c->shared(c, 1, "depthwise_bytes", size_t(blocks * area * kLanes) * 4, &fresh));
  if (!s->weight) return no_memory(c);
  if (fresh)
    for (int64_t i = 0; i < g.c; ++i)
      for (int64_t k = 0; k < area; ++k) s->weight[(i / kLanes * area + k) * kLanes + i % kLanes] = in<int8_t>(c, 1)[i * area + k];
  c->scratch_bytes = columns_bytes(blocks * kLanes);
  return 0;
}

// P neighbouring pixels; rows ky0..ky1-1 and columns kx0..kx1-1 of the kernel lie inside of the image.
template <int P, class X>
static inline void depthwise_bytes(const Window &g, const X *x, const float *w, vf zero, int64_t ky0, int64_t ky1, int64_t kx0, int64_t kx1, vf acc[P]) {
  MNN_UNROLL for (int i = 0; i < P; ++i) acc[i] = vf{};
  for (int64_t ky = ky0; ky < ky1; ++ky)
    for (int64_t kx = kx0; kx < kx1; ++kx) {
      const vf k = load(w + (ky * g.kw + kx) * kLanes);
      const X *from = x + (ky * g.dh * g.w + kx * g.dw) * kLanes;
      MNN_UNROLL for (int i = 0; i < P; ++i) acc[i] = fma(to_float(load_wide(from + i * g.sw * kLanes)) - zero, k, acc[i]);
    }
}
// The same for kernels of three columns, close together: each pixel is widened once in a row.
template <int P, int S, class X>
static inline void depthwise_bytes3(const Window &g, const X *x, const float *w, vf zero, int64_t ky0, int64_t ky1, vf acc[P]) {
  MNN_UNROLL for (int i = 0; i < P; ++i) acc[i] = vf{};
  for (int64_t ky = ky0; ky < ky1; ++ky) {
    const X *from = x + ky * g.dh * g.w * kLanes;
    vf v[(P - 1) * S + 3];
    MNN_UNROLL for (int i = 0; i < (P - 1) * S + 3; ++i) v[i] = to_float(load_wide(from + i * kLanes)) - zero;
    MNN_UNROLL for (int kx = 0; kx < 3; ++kx) {
      const vf k = load(w + (ky * 3 + kx) * kLanes);
      MNN_UNROLL for (int i = 0; i < P; ++i) acc[i] = fma(v[i * S + kx], k, acc[i]);
    }
  }
}

template <class X, class T> static void byte_depthwise_rows(const mnn_call *c, const ByteDepthwise &s, const Columns &columns, int32_t point) {
  const Window &g = s.g;
  const int64_t blocks = ceil_div(g.c, kLanes), area = g.kh * g.kw;
  constexpr int P = MNN_VLEN == 16 ? 8 : 4;
  const vf zero = dup(float(point));
  const int64_t inside0 = min64(g.ow, ceil_div(g.left, g.sw)), reach = g.w - 1 - (g.kw - 1) * g.dw + g.left;
  const int64_t inside1 = max64(inside0, min64(g.ow, reach < 0 ? 0 : reach / g.sw + 1));
  const bool close = g.kw == 3 && g.dw == 1;
  parallel(c, g.n * blocks * g.oh, grain_for(g.ow * area * kLanes), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t row = i % g.oh, block = i / g.oh % blocks, y0 = row * g.sh - g.top;
      const X *x = in<X>(c, 0) + (i / g.oh * g.h + y0) * g.w * kLanes;
      const float *w = s.weight + block * area * kLanes;
      T *y = out<T>(c, 0) + i * g.ow * kLanes;
      const vi bias = load(columns.bias + block * kLanes);
      const vf scale = load(columns.scale + block * kLanes), shift = load(columns.shift + block * kLanes);
      const int64_t ky0 = y0 < 0 ? min64(g.kh, ceil_div(-y0, g.dh)) : 0;
      const int64_t ky1 = max64(ky0, min64(g.kh, y0 >= g.h ? 0 : (g.h - 1 - y0) / g.dh + 1));
      const auto finish = [&](int64_t ox, vf acc) { put(s.finish, y + ox * kLanes, to_int(acc) + bias, scale, shift, kLanes); };
      const auto edge = [&](int64_t ox) {
        const int64_t x0 = ox * g.sw - g.left;
        const int64_t kx0 = x0 < 0 ? min64(g.kw, ceil_div(-x0, g.dw)) : 0;
        const int64_t kx1 = max64(kx0, min64(g.kw, x0 >= g.w ? 0 : (g.w - 1 - x0) / g.dw + 1));
        vf acc[1];
        depthwise_bytes<1>(g, x + x0 * kLanes, w, zero, ky0, ky1, kx0, kx1, acc);
        finish(ox, acc[0]);
      };
      int64_t ox = 0;
      for (; ox < inside0; ++ox) edge(ox);
      for (; ox + P <= inside1; ox += P) {
        vf acc[P];
        const X *from = x + (ox * g.sw - g.left) * kLanes;
        if (close && g.sw == 1) depthwise_bytes3<P, 1>(g, from, w, zero, ky0, ky1, acc);
        else if (close && g.sw == 2) depthwise_bytes3<P, 2>(g, from, w, zero, ky0, ky1, acc);
        else depthwise_bytes<P>(g, from, w, zero, ky0, ky1, 0, g.kw, acc);
        MNN_UNROLL for (int k = 0; k < P; ++k) finish(ox + k, acc[k]);
      }
      for (; ox < g.ow; ++ox) edge(ox);
    }
  });
}

static int byte_depthwise_run(const mnn_call *c) {
  const ByteDepthwise &s = state<ByteDepthwise>(c);
  const Columns columns = columns_at(c->scratch, ceil_div(s.g.c, kLanes) * kLanes);
  const int32_t zero = present(c, 2) ? byte_at(c->in[2], 0) : 0;
  for (int64_t o = 0; o < s.g.c; ++o) fill_column(c, s.finish, 3, o, columns, o, 0);
  for_type(s.finish.made, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if (c->in[0].dtype.code == MNN_INT) byte_depthwise_rows<int8_t, T>(c, s, columns, zero);
    else byte_depthwise_rows<uint8_t, T>(c, s, columns, zero);
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn
