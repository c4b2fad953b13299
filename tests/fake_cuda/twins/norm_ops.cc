#include "../run.h"

#include <kolo/core/kernels/cuda/norm_ops.cu>
