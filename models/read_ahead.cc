#include <kolo/models/read_ahead.h>

#include <pthread.h>

namespace kolo::models::detail {

void name_input_thread(std::thread& thread) { pthread_setname_np(thread.native_handle(), "kolo-input"); }

}  // namespace kolo::models::detail
