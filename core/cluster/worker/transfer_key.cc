#include <kolo/core/cluster/worker/transfer_key.h>

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/device/device_name.h>

namespace kolo::detail {
namespace {

std::vector<std::string> fields_of(const std::string& text) {
  std::vector<std::string> fields;
  std::size_t begin = 0;
  for (auto end = text.find(';'); end != std::string::npos; end = text.find(';', begin)) {
    fields.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  fields.push_back(text.substr(begin));
  return fields;
}

bool is_device(const std::string& name) {
  const auto spec = parse_device_spec(name);
  return spec && spec->is_full();
}

}  // namespace

std::string task_of_device(const std::string& device) { return device.substr(0, device.rfind("/device:")); }

std::string to_string(const TransferKey& key) {
  return fmt::format("{};{:016x};{};{}@{};0:0", key.send_device, key.incarnation, key.recv_device, key.tensor,
                     key.updates);
}

TransferKey parse_transfer_key(const std::string& text) {
  const auto refuse = [&] { return InvalidArgumentError("Invalid rendezvous key: {}", text); };
  const std::vector<std::string> fields = fields_of(text);
  if (fields.size() != 5 || !is_device(fields[0]) || !is_device(fields[2]) || fields[1].size() != 16)
    throw refuse();
  TransferKey key;
  key.send_device = fields[0];
  key.recv_device = fields[2];
  const char* const end = fields[1].data() + fields[1].size();
  const auto [stopped, error] = std::from_chars(fields[1].data(), end, key.incarnation, 16);
  const auto at = fields[3].rfind('@');
  if (error != std::errc() || stopped != end || at == std::string::npos || at == 0) throw refuse();
  key.tensor = fields[3].substr(0, at);
  const auto updates = parse_int64(fields[3].substr(at + 1));
  if (!updates || *updates < 0 || *updates > 1'000'000'000) throw refuse();
  key.updates = static_cast<int>(*updates);
  return key;
}

}  // namespace kolo::detail
