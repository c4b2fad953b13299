#include "../run.h"

#include <kolo/core/kernels/cuda/updates.cu>
