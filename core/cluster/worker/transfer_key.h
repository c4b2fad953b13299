// By which names a value goes from one task to another.
#pragma once

#include <cstdint>
#include <string>

namespace kolo::detail {

/// `/job:ps/replica:0/task:1`, of a device's full name.
std::string task_of_device(const std::string& device);

/// The parts of a key.
struct TransferKey {
  std::string send_device;
  std::uint64_t incarnation = 0;  // of the sending device
  std::string recv_device;
  std::string tensor;  // "x:0" or "^x"
  int updates = 0;     // of the variable, that the reader sees
};
std::string to_string(const TransferKey& key);
/// Throws InvalidArgumentError for what is none.
TransferKey parse_transfer_key(const std::string& text);

}  // namespace kolo::detail
