#include "../run.h"

#include <kolo/core/kernels/cuda/row_updates.cu>
