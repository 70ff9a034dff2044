/* A kernel library for tests of the runtime. Rows are longer than this core knows: it has to step by kernel_size. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "mnn/kernel.h"

#ifndef ABI
#define ABI MNN_KERNEL_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(mnn_library)
#endif
#ifndef ENTRY
#define ENTRY mnn_kernels
#endif

typedef struct {
  mnn_kernel kernel;
  const char *of_a_later_version;
} row;

static int64_t count(const mnn_tensor *t) {
  int64_t n = 1;
  for (int d = 0; d < t->rank; d++) n *= t->shape[d];
  return n;
}

static const mnn_attr *attr(const mnn_call *c, const char *name) {
  for (uint32_t i = 0; i < c->n_attr; i++)
    if (!strcmp(c->attr[i].name, name)) return c->attr + i;
  return NULL;
}

static int add(const mnn_call *c) {
  float *y = c->out->data;
  for (int64_t i = 0, n = count(c->out); i < n; i++) {
    y[i] = 0;
    for (uint32_t k = 0; k < c->n_in; k++)
      if (c->in[k].rank >= 0) y[i] += ((const float *)c->in[k].data)[i];
  }
  return 0;
}

/* y = x, or a failure that shows x where x < 0. */
static int check(const mnn_call *c) {
  const float *x = c->in->data;
  char text[64];
  for (int64_t i = 0, n = count(c->out); i < n; i++) {
    snprintf(text, sizeof text, "x[%d] is %.1f", (int)i, x[i]);
    if (x[i] < 0) return c->fail(c, text);
    ((float *)c->out->data)[i] = x[i];
  }
  return 0;
}

static int speechless(const mnn_call *c) { return (void)c, 7; }

/* Every worker fails at once. */
static void fail_body(void *arg, int64_t begin, int64_t end, int32_t worker) {
  const mnn_call *c = arg;
  (void)begin, (void)end;
  c->fail(c, worker & 1 ? "an odd worker failed" : "an even worker failed");
}
static int fail_all(const mnn_call *c) { return c->parallel(c, 64, 1, fail_body, (void *)c), 1; }

/* y = x by way of scratch memory, which is spoilt afterwards. */
static int scratch_prepare(mnn_call *c) { return c->scratch_bytes = count(c->in) * sizeof(float), 0; }
static int scratch(const mnn_call *c) {
  if ((uintptr_t)c->scratch % 64) return c->fail(c, "scratch is not aligned");
  memcpy(c->scratch, c->in->data, c->scratch_bytes);
  memcpy(c->out->data, c->scratch, c->scratch_bytes);
  memset(c->scratch, 0xff, c->scratch_bytes);
  return 0;
}

/* y = x * w + (numbers of constants that were packed): w packed once for all kernels of its shape. */
typedef struct {
  const float *w;
  int64_t columns;
  int *fills;
} scale_state;
static int scale_prepare(mnn_call *c) {
  int fresh;
  const int64_t n = count(c->in + 1);
  scale_state *s = c->alloc(c, sizeof *s);
  if (s->fills || (uintptr_t)s % 64) return c->fail(c, "alloc gave memory that is not zero or not aligned");
  if (!c->in[1].data) return c->fail(c, "w is not constant");
  float *packed = c->shared(c, 1, "copy", n * sizeof(float) + sizeof(int), &fresh);
  s->fills = (int *)(packed + n);
  if (fresh) memcpy(packed, c->in[1].data, n * sizeof(float));
  if (attr(c, "decline")) return c->fail(c, "packed for nothing");
  *s->fills += fresh;
  s->w = packed, s->columns = c->in[1].shape[c->in[1].rank - 1];
  c->state = s;
  return 0;
}
static int scale(const mnn_call *c) {
  const scale_state *s = c->state;
  float *y = c->out->data;
  y[0] = *s->fills, y[1] = (float)s->columns;
  for (int64_t i = 0, n = count(c->in); i < n; i++) y[2 + i] = ((const float *)c->in->data)[i] * s->w[i];
  return 0;
}

/* Two rows of one op: the first takes only what has the attribute mode="fast". */
static int fast_prepare(mnn_call *c) {
  const mnn_attr *a = attr(c, "mode");
  return a && a->kind == 's' && !strcmp(a->v.s, "fast") ? 0 : c->fail(c, "mode is not fast");
}
static int fast(const mnn_call *c) { return *(float *)c->out->data = 1, 0; }
static int slow(const mnn_call *c) { return *(float *)c->out->data = 2, 0; }

/* Attributes as numbers: kind, n, first value, last value, for each of "a".."f". */
static int attrs_prepare(mnn_call *c) {
  double *found = c->state = c->alloc(c, 24 * sizeof(double));
  for (int k = 0; k < 6; k++) {
    const char name[2] = {(char)('a' + k), 0};
    const mnn_attr *a = attr(c, name);
    double *v = found + 4 * k;
    if (!a) continue;
    v[0] = a->kind, v[1] = a->n;
    if (a->kind == 'i') v[2] = v[3] = (double)a->v.i;
    if (a->kind == 'f') v[2] = v[3] = a->v.f;
    if (a->kind == 's') v[2] = a->v.s[0], v[3] = a->v.s[strlen(a->v.s) - 1];
    if (a->kind == 'I' && a->n) v[2] = (double)a->v.ints[0], v[3] = (double)a->v.ints[a->n - 1];
    if (a->kind == 'F' && a->n) v[2] = a->v.floats[0], v[3] = a->v.floats[a->n - 1];
  }
  return 0;
}
static int attrs(const mnn_call *c) { return memcpy(c->out->data, c->state, 24 * sizeof(double)), 0; }

/* A loop of x[0] items with grain x[1]: y[i] = (first item of the chunk of i, worker, 1 if that worker was alone, times done). */
typedef struct {
  const mnn_call *call;
  int64_t *y;
  int busy[256];
  int nested;
} loop;
static void inner(void *arg, int64_t begin, int64_t end, int32_t worker) {
  loop *l = arg;
  (void)worker;
  for (int64_t i = begin; i < end; i++) __atomic_add_fetch(&l->nested, 1, __ATOMIC_RELAXED);
}
static void outer(void *arg, int64_t begin, int64_t end, int32_t worker) {
  loop *l = arg;
  const int alone = !__atomic_exchange_n(&l->busy[worker], 1, __ATOMIC_ACQUIRE);
  l->call->parallel(l->call, 10, 1, inner, l);
  for (volatile int spin = 0; spin < 2000; spin++) {}
  for (int64_t i = begin; i < end; i++) {
    l->y[4 * i] = begin, l->y[4 * i + 1] = worker, l->y[4 * i + 2] = alone;
    __atomic_add_fetch(&l->y[4 * i + 3], 1, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&l->busy[worker], 0, __ATOMIC_RELEASE);
}
static int run_loop(const mnn_call *c) {
  const int64_t *x = c->in->data;
  loop l = {c, c->out->data, {0}, 0};
  memset(l.y, 0, x[0] * 32);
  c->parallel(c, x[0], x[1], outer, &l);
  l.y[4 * x[0]] = l.nested;
  return 0;
}

static void nap(int64_t milliseconds) {
  struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&t, NULL);
}
static void nap_body(void *arg, int64_t begin, int64_t end, int32_t worker) {
  (void)worker;
  for (int64_t i = begin; i < end; i++) nap(*(const int64_t *)arg);
}
/* Sleeps x[1] milliseconds, x[0] times. */
static int naps(const mnn_call *c) {
  const int64_t *x = c->in->data;
  c->parallel(c, x[0], 1, nap_body, (void *)(x + 1));
  return 0;
}

static const row rows[] = {
    {{"add_never", "test.Add", "*->*", "never", "p->p", 0, NULL, add}, ""},
    {{"add_hi", "test.Add", "f32,f32->f32", "hi", "f,f->f", 1, NULL, add}, ""},
    {{"add_hi_b", "test.Add", "f32,f32->f32", "hi", "b,p->b", 0, NULL, add}, ""},
    {{"add_lo_b", "test.Add", "f32,f32->f32", "lo", "b,p->b", 0, NULL, add}, ""},
    {{"add_any", "test.Add", "*->f32", "", "p->p", 3, NULL, add}, ""},
    {{"check", "test.Check", "f32->f32", "", "p->p", 0, NULL, check}, ""},
    {{"speechless", "test.Speechless", "f32->f32", "", "p->p", 0, NULL, speechless}, ""},
    {{"fail_all", "test.FailAll", "f32->f32", "", "p->p", 0, NULL, fail_all}, ""},
    {{"scratch", "test.Scratch", "f32->f32", "", "p->p", 0, scratch_prepare, scratch}, ""},
    {{"scale", "test.Scale", "f32,f32->f32", "", "p,p->p", 0, scale_prepare, scale}, ""},
    {{"fast", "test.Pick", "f32->f32", "", "p->p", 0, fast_prepare, fast}, ""},
    {{"slow", "test.Pick", "f32->f32", "", "p->p", 0, NULL, slow}, ""},
    {{"attrs", "test.Attrs", "f32->f64", "", "p->p", 0, attrs_prepare, attrs}, ""},
    {{"loop", "test.Loop", "i64->i64", "", "p->p", 0, NULL, run_loop}, ""},
    {{"naps", "test.Naps", "i64->f32", "", "p->p", 0, NULL, naps}, ""},
};

static int supports(const char *isa) { return strcmp(isa, "never") != 0; }
static int32_t block(const char *isa) { return !strcmp(isa, "hi") ? 16 : !strcmp(isa, "lo") ? 4 : 0; }

static const mnn_library library = {ABI, SIZE, "test-lib", supports, block, sizeof rows / sizeof *rows, sizeof(row), &rows->kernel};

__attribute__((visibility("default"))) const mnn_library *ENTRY(void) { return &library; }
