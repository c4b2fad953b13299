#include "../run.h"

#include <kolo/core/kernels/cuda/norms.cu>
