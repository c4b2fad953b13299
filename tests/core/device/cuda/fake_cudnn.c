/* What a libcudnn.so.9 says of itself. */
#include <stddef.h>
size_t cudnnGetVersion(void) { return 90100; }
size_t cudnnGetCudartVersion(void) { return FAKE_CUDART_VERSION; }
