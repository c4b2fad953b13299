#include "../run.h"

#include <kolo/core/kernels/cuda/movement.cu>
