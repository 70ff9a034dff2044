/* mnn/kernel.h -- all that a kernel library and the core know about each other.
 *
 * Plain C99. The law of kernels: a kernel reads `in`, writes `out`, may use `scratch` and what its own `prepare` left in
 * `state`, splits work with `parallel`, and returns 0 -- or calls `fail` and returns what that returned. It never
 * allocates, throws, starts threads, does I/O, or keeps state outside of these.
 *
 * Structs begin with their size where the other side may be older or newer; fields are only ever appended, and a field beyond
 * `size` must not be read. MNN_KERNEL_ABI changes only when an existing field changes meaning. */
#ifndef MNN_KERNEL_H
#define MNN_KERNEL_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define MNN_KERNEL_ABI 1u

/* Element types, as in DLPack: (code, bits). */
enum { MNN_INT = 0, MNN_UINT = 1, MNN_FLOAT = 2, MNN_BFLOAT = 4, MNN_BOOL = 6 };
typedef struct mnn_dtype {
  uint8_t code, bits;
  uint16_t lanes; /* 1 */
} mnn_dtype;

/* Physical layouts. PLAIN: dense row-major. BLOCKED, for logical (N, C, spatial...): [N][ceil(C/block)][spatial...][block].
 * The lanes past C in the last block hold anything, even NaN: a kernel may write them freely and must not let them
 * influence real elements. */
enum { MNN_PLAIN = 0, MNN_BLOCKED = 1 };

typedef struct mnn_tensor {
  void *data; /* 64-byte aligned for memory of the core; inputs of the user at least element-aligned.
                 While preparing: NULL unless the tensor is constant. */
  mnn_dtype dtype;
  int32_t rank; /* -1: an optional input that is absent */
  int32_t layout, block;
  const int64_t *shape; /* logical, NCHW order for images */
} mnn_tensor;

/* An attribute by its name in the op's schema. kind: 'i' integer or bool, 'f' float, 's' string or enum member,
 * 'I' n integers, 'F' n floats, 'S' n strings. */
typedef struct mnn_attr {
  const char *name;
  int32_t kind, n;
  union {
    int64_t i;
    double f;
    const char *s;
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
  } v;
} mnn_attr;

typedef struct mnn_call mnn_call;
/* Part of a loop, items begin..end-1, run by the `worker`-th thread (0 <= worker < call->threads). */
typedef void (*mnn_body)(void *arg, int64_t begin, int64_t end, int32_t worker);

struct mnn_call {
  uint32_t size;
  uint32_t n_in, n_out, n_attr;
  const mnn_tensor *in, *out;
  const mnn_attr *attr; /* while preparing only; NULL in run */
  void *state;          /* set by prepare, read-only in run (several threads may run one kernel at once) */
  void *scratch;        /* scratch_bytes, 64-byte aligned, contents undefined; NULL while preparing */
  size_t scratch_bytes; /* set by prepare */
  int32_t threads;      /* how many workers `parallel` may use */
  void *core;           /* the core's own */

  /* Runs body over 0..n-1 in chunks of at least `grain` items (the last may be shorter) and returns when all are done. Their
   * borders depend on n, grain and call->threads only. Once the run is cancelled chunks are left out, here and in every later
   * loop of the run; so code after a loop must not trust what it wrote so far as to leave its memory. */
  void (*parallel)(const mnn_call *, int64_t n, int64_t grain, mnn_body body, void *arg);
  /* Records why the kernel failed (the text is copied); returns a non-zero status to return. */
  int (*fail)(const mnn_call *, const char *why);
  /* Only in prepare: zeroed, 64-byte aligned memory that lives as long as the kernel. NULL when there is no more. */
  void *(*alloc)(const mnn_call *, size_t bytes);
  /* Only in prepare: as alloc, but shared by all kernels of the model made for the same constant input `in[index]` that ask
   * with the same key (say, "gemm16x6"): packed weights. *fresh is set to 1 for the one that has to fill it. */
  void *(*shared)(const mnn_call *, uint32_t index, const char *key, size_t bytes, int *fresh);
};

typedef struct mnn_kernel {
  const char *name;    /* unique in the library, shown in profiles: "conv_1x1_f32_avx512" */
  const char *op;      /* op type, "Convolution" */
  const char *types;   /* "f32,f32,f32->f32"; types are f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool and "*" (any); the last input type
                          repeats for further inputs, the last output type for further outputs; absent inputs match anything */
  const char *isa;     /* "avx2"; "" runs anywhere */
  const char *layouts; /* "b,p,p->b": p plain, b blocked, f follows (all f tensors of a call share one layout and have
                          equal shapes, or are plain); repeats as types do */
  uint32_t inplace;    /* bit i: out[0] may be the same memory as in[i] */
  /* Looks at shapes, types, attributes and constants: chooses the algorithm, packs weights. Returns 0, or what
   * fail returned: then the next row of the table is asked. NULL: nothing to prepare. */
  int (*prepare)(mnn_call *);
  int (*run)(const mnn_call *);
} mnn_kernel;

/* What a library exports: rows in order of preference, the best first. */
typedef struct mnn_library {
  uint32_t abi, size;
  const char *name;                 /* "cpu-x86" */
  int (*supports)(const char *isa); /* may this machine run kernels of that isa? */
  int32_t (*block)(const char *isa); /* channels in a block of the blocked layout for that isa; 0 if it has none */
  size_t n_kernels;
  size_t kernel_size; /* sizeof(mnn_kernel) as the library was built: the stride of the table */
  const mnn_kernel *kernels;
} mnn_library;

/* The one symbol a kernel library exports. */
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const mnn_library *mnn_kernels(void);

#ifdef __cplusplus
}
#endif
#endif
