#define MNN_ISA sse41
#define MNN_VLEN 4
#include <mnn_cpu/isa.inc>
