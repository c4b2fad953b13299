// What a collective may be besides, if it can be ended from without.
#pragma once

#include <exception>

namespace kolo {

class Abortable {
 public:
  virtual ~Abortable() = default;
  /// It was started and will not be advanced any more, because of `error`, its own or another's. False: what
  /// is on its way may still refer to its memory, so that it must be kept. The thread that advances it.
  virtual bool abort(const std::exception_ptr& error) = 0;
};

}  // namespace kolo
