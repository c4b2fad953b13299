#include "../run.h"

#include <kolo/core/kernels/cuda/normalization.cu>
