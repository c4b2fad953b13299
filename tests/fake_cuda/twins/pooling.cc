#include "../run.h"

#include <kolo/core/kernels/cuda/pooling.cu>
