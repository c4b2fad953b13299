// A file descriptor with an owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace kolo::detail {

/// Closes it at its end; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  /// For a new owner.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace kolo::detail
