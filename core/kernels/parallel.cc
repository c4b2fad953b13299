#include <kolo/core/kernels/parallel.h>

#include <omp.h>

namespace kolo {

int intra_op_threads() { return omp_in_parallel() != 0 ? 1 : omp_get_max_threads(); }

void set_intra_op_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace kolo
