#include "../run.h"

#include <kolo/core/kernels/cuda/distance.cu>
