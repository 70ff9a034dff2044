#define MNN_ISA avx512vnni
#define MNN_VLEN 16
#define MNN_ROWS <mnn_cpu/int8_kernels.inc>
#include <mnn_cpu/isa.inc>
