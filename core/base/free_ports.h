// Ports of this machine's loopback interface that nobody uses.
#pragma once

#include <vector>

namespace kolo {

/// Different ports, all held while the object lives. Afterwards they are free for the servers they are meant
/// for: connections of other programs get none of them, and other FreePorts of this machine begin elsewhere.
class FreePorts {
 public:
  /// Throws UnavailableError with the system's reason where there are not so many.
  explicit FreePorts(int count);
  ~FreePorts();
  FreePorts(const FreePorts&) = delete;
  FreePorts& operator=(const FreePorts&) = delete;
  int operator[](int i) const { return ports_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<int> sockets_, ports_;
};

}  // namespace kolo
