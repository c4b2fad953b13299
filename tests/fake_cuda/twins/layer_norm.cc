#include "../run.h"

#include <kolo/core/kernels/cuda/layer_norm.cu>
