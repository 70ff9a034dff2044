// LayerNorm, GroupNorm, InstanceNorm: rows of plain tensors, normalised with a mean and a variance in double.
#pragma once
#include "call.h"
#include "math.h"
#include "wide.h"

namespace mnn {
namespace MNN_ISA {

struct Moments {
  float mean, scale;  // scale: 1 / standard deviation
};
// rms: the mean is taken as 0.
static inline Moments moments(const float *x, int64_t n, double epsilon, bool rms) {
  double mean = 0, square = 0;
  int64_t j = 0;
  if (!rms) {
    vd total{};
    for (; j + kLanes <= n; j += kLanes) total += widen(load(x + j));
    mean = sum(total);
    for (; j < n; ++j) mean += double(x[j]);
    mean /= double(n);
  }
  vd total{};
  for (j = 0; j + kLanes <= n; j += kLanes) {
    const vd d = widen(load(x + j)) - mean;
    total += d * d;
  }
  square = sum(total);
  for (; j < n; ++j) square += (double(x[j]) - mean) * (double(x[j]) - mean);
  return {float(mean), float(1.0 / __builtin_sqrt(square / double(n) + epsilon))};
}

// Over trailing axes; gamma and beta have a number for each element of a row.
struct LayerNorm {
  int64_t rows, n;
  double epsilon;
  bool rms;
};
static int layer_norm_prepare(mnn_call *c) {
  LayerNorm *s = new_state<LayerNorm>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  const mnn_attr *axes = attr(c, "axis");
  if (c->n_out != 1 || attr_int(c, "group", 1) > 1) return c->fail(c, "this form of LayerNorm is not native");
  const int32_t n = axes && axes->kind == 'I' && axes->n ? axes->n : 1;
  for (int32_t i = 0; i < (axes && axes->kind == 'I' ? axes->n : 0); ++i) {
    int64_t a = axes->v.ints[i];
    if (a < 0) a += x.rank;
    if (a < x.rank - n) return c->fail(c, "the axes are not the last ones");
  }
  if (x.rank < n) return c->fail(c, "fewer dimensions than axes");
  *s = {count(x, 0, x.rank - n), count(x, x.rank - n), double(attr_float(c, "epsilon")), attr_int(c, "useRMSNorm") != 0};
  for (uint32_t i = 1; i < 3; ++i)
    if (present(c, i) && count(c->in[i]) != s->n) return c->fail(c, "scale or bias of another size");
  return 0;
}
static int layer_norm_run(const mnn_call *c) {
  const LayerNorm &s = state<LayerNorm>(c);
  const float *gamma = present(c, 1) ? in<float>(c, 1) : nullptr, *beta = present(c, 2) ? in<float>(c, 2) : nullptr;
  parallel(c, s.n ? s.rows : 0, grain_for(s.n * 4), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const float *x = in<float>(c, 0) + i * s.n;
      float *y = out<float>(c, 0) + i * s.n;
      const Moments m = moments(x, s.n, s.epsilon, s.rms);
      for (int64_t j = 0; j < s.n; ++j) y[j] = (x[j] - m.mean) * m.scale;
      if (gamma) for (int64_t j = 0; j < s.n; ++j) y[j] *= gamma[j];
      if (beta) for (int64_t j = 0; j < s.n; ++j) y[j] += beta[j];
    }
  });
  return 0;
}

// Over groups of channels; gamma and beta have a number for each channel.
struct GroupNorm {
  int64_t groups, channels, inner;  // groups in all images; channels of a group
  int64_t per_image;
  double epsilon;
  bool swish, rms;
  const float *gamma, *beta;  // NULL: an input, or absent
};
static int group_norm_start(mnn_call *c, int64_t groups, bool rms = false) {
  GroupNorm *s = new_state<GroupNorm>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  if (x.rank < 2 || groups < 1 || x.shape[1] % groups) return c->fail(c, "channels that do not split into groups");
  *s = {x.shape[0] * groups, x.shape[1] / groups, count(x, 2), groups, double(attr_float(c, "epsilon")), false, rms, nullptr, nullptr};
  return 0;
}
static int check_factors(mnn_call *c) {
  for (uint32_t i = 1; i < 3; ++i)
    if (present(c, i) && count(c->in[i]) != c->in[0].shape[1]) return c->fail(c, "scale or bias of another size");
  return 0;
}
static int group_norm_prepare(mnn_call *c) {
  if (const int failed = group_norm_start(c, attr_int(c, "group"))) return failed;
  if (present(c, 3)) return c->fail(c, "a third addend is not native");
  static_cast<GroupNorm *>(c->state)->swish = attr_int(c, "bSwish") != 0;
  return check_factors(c);
}
static int layer_norm_groups_prepare(mnn_call *c) {
  if (c->n_out != 1 || attr_int(c, "group", 1) < 2) return c->fail(c, "this form of LayerNorm is not native");
  if (const int failed = group_norm_start(c, attr_int(c, "group"), attr_int(c, "useRMSNorm") != 0)) return failed;
  return check_factors(c);
}
// Attributes of one number for each channel, as floats.
static bool channel_numbers(mnn_call *c, const char *name, int64_t channels, const float *&to) {
  const mnn_attr *a = attr(c, name);
  if (!a || a->kind != 'F' || !a->n) return true;
  if (a->n != channels) return false;
  float *p = static_cast<float *>(c->alloc(c, size_t(channels) * 4));
  for (int32_t i = 0; p && i < a->n; ++i) p[i] = float(a->v.floats[i]);
  to = p;
  return p != nullptr;
}
static int instance_norm_prepare(mnn_call *c) {
  if (present(c, 1) || present(c, 2)) return c->fail(c, "a given mean or variance is not native");
  if (c->in[0].rank < 2) return c->fail(c, "fewer than 2 dimensions");
  if (const int failed = group_norm_start(c, max64(1, c->in[0].shape[1]))) return failed;
  GroupNorm &s = *static_cast<GroupNorm *>(c->state);
  const int64_t channels = c->in[0].shape[1];
  if (!channel_numbers(c, "slopeData", channels, s.gamma) || !channel_numbers(c, "biasData", channels, s.beta))
    return c->fail(c, "slopes or biases of another size");
  return 0;
}
static int group_norm_run(const mnn_call *c) {
  const GroupNorm &s = state<GroupNorm>(c);
  const float *gamma = s.gamma || !present(c, 1) ? s.gamma : in<float>(c, 1), *beta = s.beta || !present(c, 2) ? s.beta : in<float>(c, 2);
  const int64_t n = s.channels * s.inner;
  parallel(c, n ? s.groups : 0, grain_for(n * 4), [&](int64_t b, int64_t e, int32_t) {
    for (int64_t i = b; i < e; ++i) {
      const Moments m = moments(in<float>(c, 0) + i * n, n, s.epsilon, s.rms);
      for (int64_t k = 0; k < s.channels; ++k) {
        const int64_t channel = i % s.per_image * s.channels + k;
        const float *x = in<float>(c, 0) + i * n + k * s.inner;
        float *y = out<float>(c, 0) + i * n + k * s.inner;
        const float factor = m.scale * (gamma ? gamma[channel] : 1), offset = beta ? beta[channel] : 0;
        for (int64_t j = 0; j < s.inner; ++j) y[j] = (x[j] - m.mean) * factor + offset;
        if (!s.swish) continue;
        int64_t j = 0;
        for (; j + kLanes <= s.inner; j += kLanes) store(y + j, load(y + j) * sigmoid(load(y + j)));
        if (j < s.inner) store_tail(y + j, load_tail(y + j, s.inner - j) * sigmoid(load_tail(y + j, s.inner - j)), s.inner - j);
      }
    }
  });
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn
