// LSTM, RNN and GRU over a sequence. What depends on the input alone is one product for all steps; each step then adds the product with the
// state and applies the gates.
#pragma once
#include "gemm.h"
#include "math.h"

namespace mnn {
namespace MNN_ISA {

struct Recurrent {
  int64_t t, batch, input, hidden, directions, gates;
  bool before_reset;          // GRU: the reset gate is applied after the product
  bool keep;                  // GRU: all steps are an output, not only the last state
  bool reverse;               // the one direction goes from the end to the start
  uint32_t lengths;           // which input has a length for each row of the batch, if it is there
  const float *w[2], *r[2];   // packed: input -> gates, state -> gates
  float *bias[2], *state_bias[2];
};

// Runs a product over all threads.
static inline void gemm_all(const mnn_call *c, const Gemm &g) {
  parallel(c, gemm_pieces(g), gemm_grain(g),
           [&](int64_t b, int64_t e, int32_t) { for (int64_t i = b; i < e; ++i) gemm_piece(g, i); });
}

// Packs a constant matrix whose element (k, n) is p[k * step_k + n * step_n].
static inline const float *packed_constant(mnn_call *c, uint32_t index, const char *key, const float *p, int64_t step_k, int64_t step_n, int64_t k, int64_t n) {
  int fresh = 0;
  float *to = static_cast<float *>(c->shared(c, index, key, size_t(packed_size(k, n)) * 4, &fresh));
  if (to && fresh) pack_panels(p, step_k, step_n, k, n, to, 0, ceil_div(n, kPanel));
  return to;
}

static inline bool constant(const mnn_call *c, uint32_t i) { return present(c, i) && c->in[i].data; }

// Whether an op has nothing beyond MNN's own form: what ONNX has more is not native.
static inline bool plain_form(const mnn_call *c) {
  const char *direction = attr_text(c, "direction");
  const mnn_attr *names = attr(c, "activations");
  return (!*direction || !strcmp(direction, "forward") || !strcmp(direction, "reverse") || !strcmp(direction, "bidirectional")) &&
         attr_float(c, "clip") == 0 && !attr_int(c, "input_forget") && !attr_int(c, "layout") && !(names && names->n);
}

// How many steps a row of the batch has.
static inline int64_t length(const mnn_call *c, const Recurrent &s, int64_t b) {
  return present(c, s.lengths) ? in<int32_t>(c, s.lengths)[b] : s.t;
}

static inline bool lengths_fit(const mnn_call *c, const Recurrent &s) {
  for (int64_t b = 0; b < s.batch; ++b)
    if (length(c, s, b) < 0 || length(c, s, b) > s.t) return false;
  return true;
}

static inline bool backward(const Recurrent &s, int64_t d) { return d == 1 || s.reverse; }

// Puts the steps [T, B, width] of a direction in the order in which they are taken: from each row's own end, if it goes back.
static inline void order_steps(const mnn_call *c, const Recurrent &s, int64_t d, float *steps, int64_t width) {
  if (!backward(s, d)) return;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t i = 0, j = length(c, s, b) - 1; i < j; ++i, --j) {
      float *one = steps + (i * s.batch + b) * width, *other = steps + (j * s.batch + b) * width;
      for (int64_t k = 0; k < width; ++k) {
        const float kept = one[k];
        one[k] = other[k], other[k] = kept;
      }
    }
}

// Writes the state of a row to its place in Y [T, d, B, H]; behind the row's end there are zeros.
static inline void put_step(const mnn_call *c, const Recurrent &s, int64_t d, int64_t b, int64_t step, const float *h) {
  const int64_t end = length(c, s, b), t = step < end && backward(s, d) ? end - 1 - step : step;
  float *to = out<float>(c, 0) + ((t * s.directions + d) * s.batch + b) * s.hidden;
  if (step < end) memcpy(to, h, size_t(s.hidden) * 4);
  else memset(to, 0, size_t(s.hidden) * 4);
}

// X [T, B, I], W [d, gates * H, I], R [d, gates * H, H], bias [d, gates * H], h0, c0.
static int lstm_like_prepare(mnn_call *c, int64_t gates) {
  Recurrent *s = new_state<Recurrent>(c);
  if (!s) return no_memory(c);
  if (!plain_form(c)) return c->fail(c, "options beyond MNN's own form are not native");
  if (c->in[0].rank != 3 || !constant(c, 1) || !constant(c, 2) || (present(c, 3) && !constant(c, 3))) return c->fail(c, "the weights are not constant");
  const mnn_tensor &x = c->in[0], &w = c->in[1];
  if (w.rank != 3 || c->in[2].rank != 3) return c->fail(c, "weights of another shape");
  s->t = x.shape[0], s->batch = x.shape[1], s->input = x.shape[2];
  s->gates = gates, s->directions = w.shape[0], s->hidden = c->in[2].shape[2];
  const int64_t width = gates * s->hidden;
  if (s->directions > 2 || w.shape[1] != width || w.shape[2] != s->input || c->in[2].shape[1] != width) return c->fail(c, "weights of another shape");
  if (present(c, 3) && count(c->in[3]) != s->directions * width) return c->fail(c, "a bias of another shape");
  s->lengths = gates == 4 ? 6 : 5;
  s->reverse = attr_is(c, "direction", "reverse");
  for (uint32_t i = s->lengths + 1; i < c->n_in; ++i)  // peepholes
    if (present(c, i)) return c->fail(c, "further inputs are not native");
  for (int64_t d = 0; d < s->directions; ++d) {
    s->w[d] = packed_constant(c, 1, d ? "rnn1" : "rnn0", in<float>(c, 1) + d * width * s->input, 1, s->input, s->input, width);
    s->r[d] = packed_constant(c, 2, d ? "rnn1" : "rnn0", in<float>(c, 2) + d * width * s->hidden, 1, s->hidden, s->hidden, width);
    s->bias[d] = static_cast<float *>(c->alloc(c, size_t(width) * 4));
    if (!s->w[d] || !s->r[d] || !s->bias[d]) return no_memory(c);
    if (present(c, 3)) memcpy(s->bias[d], in<float>(c, 3) + d * width, size_t(width) * 4);
  }
  c->scratch_bytes = size_t(s->t * s->batch * width + 2 * s->batch * s->hidden) * 4;
  return 0;
}
static int lstm_prepare(mnn_call *c) { return lstm_like_prepare(c, 4); }
static int rnn_prepare(mnn_call *c) { return lstm_like_prepare(c, 1); }

// Gates in the order i, o, f, c; updates cell and state in place.
static inline void lstm_gates(const float *g, float *h, float *cell, int64_t n) {
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t w = min64(kLanes, n - j);
    const vf i = sigmoid(load_tail(g + j, w)), o = sigmoid(load_tail(g + n + j, w)), f = sigmoid(load_tail(g + 2 * n + j, w));
    const vf next = f * load_tail(cell + j, w) + i * tanh(load_tail(g + 3 * n + j, w));
    store_tail(cell + j, next, w);
    store_tail(h + j, o * tanh(next), w);
  }
}

template <int64_t Gates> static int lstm_like_run(const mnn_call *c) {
  const Recurrent &s = state<Recurrent>(c);
  const int64_t width = s.gates * s.hidden, one = s.batch * s.hidden;
  float *gates = static_cast<float *>(c->scratch), *h = gates + s.t * s.batch * width, *cell = h + one;
  if (!lengths_fit(c, s)) return c->fail(c, "a sequence length is negative, or beyond the number of steps");
  for (int64_t d = 0; d < s.directions; ++d) {
    gemm_all(c, {s.t * s.batch, width, s.input, in<float>(c, 0), s.input, 1, s.w[d], gates, width, s.bias[d], false});
    order_steps(c, s, d, gates, width);
    if (present(c, 4)) memcpy(h, in<float>(c, 4) + d * one, size_t(one) * 4);
    else memset(h, 0, size_t(one) * 4);
    if (Gates == 4 && present(c, 5)) memcpy(cell, in<float>(c, 5) + d * one, size_t(one) * 4);
    else memset(cell, 0, size_t(one) * 4);
    for (int64_t step = 0; step < s.t; ++step) {
      float *now = gates + step * s.batch * width;
      gemm_all(c, {s.batch, width, s.hidden, h, s.hidden, 1, s.r[d], now, width, nullptr, true});
      for (int64_t b = 0; b < s.batch; ++b) {
        float *mine = h + b * s.hidden;
        if (step < length(c, s, b)) {
          if (Gates == 4) lstm_gates(now + b * width, mine, cell + b * s.hidden, s.hidden);
          else for (int64_t j = 0; j < s.hidden; j += kLanes) {
            const int64_t w = min64(kLanes, s.hidden - j);
            store_tail(mine + j, tanh(load_tail(now + b * width + j, w)), w);
          }
        }
        put_step(c, s, d, b, step, mine);
      }
    }
    if (c->n_out > 1) memcpy(out<float>(c, 1) + d * one, h, size_t(one) * 4);
    if (c->n_out > 2) memcpy(out<float>(c, 2) + d * one, cell, size_t(one) * 4);
  }
  return 0;
}

// GRU: X [T, B, I], then for each direction gate weight [I + H, 2H] (z, r), gate bias [2H], candidate weight [I + H, H], candidate bias [H],
// recurrent bias [3H] (z, r, candidate), then h0 [d, B, H].
static int gru_prepare(mnn_call *c) {
  Recurrent *s = new_state<Recurrent>(c);
  if (!s) return no_memory(c);
  const mnn_tensor &x = c->in[0];
  s->directions = attr_int(c, "isBidirectionalRNN") ? 2 : 1;
  if (!plain_form(c) || (s->directions == 1 && attr_is(c, "direction", "bidirectional")))
    return c->fail(c, "options beyond MNN's own form are not native");
  const uint32_t weights = uint32_t(5 * s->directions);
  if (x.rank != 3 || c->n_in < 1 + weights) return c->fail(c, "weights are missing");
  for (uint32_t i = 1; i <= weights; ++i)
    if (!constant(c, i)) return c->fail(c, "the weights are not constant");
  s->lengths = weights + 2;
  s->reverse = attr_is(c, "direction", "reverse");
  s->t = x.shape[0], s->batch = x.shape[1], s->input = x.shape[2];
  s->hidden = attr_int(c, "numUnits"), s->gates = 3;
  s->before_reset = attr_int(c, "linearBeforeReset") != 0;
  s->keep = attr_int(c, "keepAllOutputs") != 0;
  const int64_t h = s->hidden, rows = s->input + h, width = 3 * h;
  if (h < 1) return c->fail(c, "numUnits is 0");
  for (int64_t d = 0; d < s->directions; ++d) {
    const uint32_t first = uint32_t(1 + 5 * d);
    const int64_t sizes[5] = {rows * 2 * h, 2 * h, rows * h, h, 3 * h};
    for (uint32_t i = 0; i < 5; ++i)
      if (count(c->in[first + i]) != sizes[i]) return c->fail(c, "weights of another shape");
    const float *gate = in<float>(c, first), *candidate = in<float>(c, first + 2);
    int fresh_w = 0, fresh_r = 0;
    float *w = static_cast<float *>(c->shared(c, first, "gru_w", size_t(packed_size(s->input, width)) * 4, &fresh_w));
    float *r = static_cast<float *>(c->shared(c, first, "gru_r", size_t(packed_size(h, width)) * 4, &fresh_r));
    s->bias[d] = static_cast<float *>(c->alloc(c, size_t(width) * 4));
    s->state_bias[d] = static_cast<float *>(c->alloc(c, size_t(width) * 4));
    float *joined = static_cast<float *>(c->alloc(c, fresh_w || fresh_r ? size_t(rows * width) * 4 : 4));
    if (!w || !r || !s->bias[d] || !s->state_bias[d] || !joined) return no_memory(c);
    if (fresh_w || fresh_r) {
      for (int64_t i = 0; i < rows; ++i) {
        memcpy(joined + i * width, gate + i * 2 * h, size_t(2 * h) * 4);
        memcpy(joined + i * width + 2 * h, candidate + i * h, size_t(h) * 4);
      }
      pack_panels(joined, width, 1, s->input, width, w, 0, ceil_div(width, kPanel));
      pack_panels(joined + s->input * width, width, 1, h, width, r, 0, ceil_div(width, kPanel));
    }
    s->w[d] = w, s->r[d] = r;
    memcpy(s->bias[d], in<float>(c, first + 1), size_t(2 * h) * 4);
    memcpy(s->bias[d] + 2 * h, in<float>(c, first + 3), size_t(h) * 4);
    memcpy(s->state_bias[d], in<float>(c, first + 4), size_t(width) * 4);
  }
  c->scratch_bytes = size_t(s->t * s->batch * width + s->batch * (width + 2 * h)) * 4;
  return 0;
}

static int gru_run(const mnn_call *c) {
  const Recurrent &s = state<Recurrent>(c);
  const int64_t n = s.hidden, width = 3 * n, one = s.batch * n;
  float *gates = static_cast<float *>(c->scratch), *mine = gates + s.t * s.batch * width, *h = mine + s.batch * width, *reset = h + one;
  const uint32_t first_state = uint32_t(1 + 5 * s.directions);
  if (!lengths_fit(c, s)) return c->fail(c, "a sequence length is negative, or beyond the number of steps");
  for (int64_t d = 0; d < s.directions; ++d) {
    gemm_all(c, {s.t * s.batch, width, s.input, in<float>(c, 0), s.input, 1, s.w[d], gates, width, s.bias[d], false});
    order_steps(c, s, d, gates, width);
    if (present(c, first_state)) memcpy(h, in<float>(c, first_state) + d * one, size_t(one) * 4);
    else memset(h, 0, size_t(one) * 4);
    for (int64_t step = 0; step < s.t; ++step) {
      gemm_all(c, {s.batch, width, n, h, n, 1, s.r[d], mine, width, s.state_bias[d], false});
      for (int64_t b = 0; b < s.batch; ++b) {
        float *now = gates + (step * s.batch + b) * width;
        const float *own = mine + b * width;
        for (int64_t j = 0; j < n; j += kLanes) {  // z and r; the state under the reset gate
          const int64_t w = min64(kLanes, n - j);
          const vf r = sigmoid(load_tail(now + n + j, w) + load_tail(own + n + j, w));
          store_tail(now + j, sigmoid(load_tail(now + j, w) + load_tail(own + j, w)), w);
          store_tail(now + n + j, r, w);
          store_tail(reset + b * n + j, r * load_tail(h + b * n + j, w), w);
        }
      }
      if (!s.before_reset)  // the candidate's product is with the reset state
        gemm_all(c, {s.batch, width, n, reset, n, 1, s.r[d], mine, width, s.state_bias[d], false});
      for (int64_t b = 0; b < s.batch; ++b) {
        const float *now = gates + (step * s.batch + b) * width, *own = mine + b * width + 2 * n;
        for (int64_t j = 0; j < n && step < length(c, s, b); j += kLanes) {
          const int64_t w = min64(kLanes, n - j);
          const vf z = load_tail(now + j, w), state_part = load_tail(own + j, w);
          const vf part = s.before_reset ? load_tail(now + n + j, w) * state_part : state_part;
          const vf candidate = tanh(load_tail(now + 2 * n + j, w) + part);
          const vf old = load_tail(h + b * n + j, w);
          store_tail(h + b * n + j, candidate + z * (old - candidate), w);
        }
        if (s.keep) put_step(c, s, d, b, step, h + b * n);
      }
    }
    const uint32_t last = s.keep ? 1 : 0;
    if (c->n_out > last) memcpy(out<float>(c, last) + d * one, h, size_t(one) * 4);
  }
  return 0;
}

}  // namespace MNN_ISA
}  // namespace mnn
