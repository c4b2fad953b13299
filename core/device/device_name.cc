#include <kolo/core/device/device_name.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kolo {
namespace {

bool is_identifier(std::string_view text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0) return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Sets `field` from `text`, where "*" unsets it. False if the text is neither.
bool read_number(std::string_view text, std::optional<int>& field) {
  if (text == "*") {
    field.reset();
    return true;
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text[0] == '-') return false;
  field = value;
  return true;
}

bool read_word(std::string_view text, std::optional<std::string>& field) {
  if (text == "*") field.reset();
  else if (is_identifier(text)) field = std::string(text);
  else return false;
  return true;
}

bool read_component(std::string_view component, DeviceSpec& spec) {
  const auto colon = component.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view key = component.substr(0, colon), value = component.substr(colon + 1);
  if (key == "job") return read_word(value, spec.job);
  if (key == "replica") return read_number(value, spec.replica);
  if (key == "task") return read_number(value, spec.task);
  if (key == "cpu" || key == "CPU" || key == "gpu" || key == "GPU") {
    spec.type = key == "cpu" || key == "CPU" ? "CPU" : "GPU";
    return read_number(value, spec.index);
  }
  if (key != "device") return false;
  const auto index = value.find(':');
  spec.index.reset();
  if (!read_word(value.substr(0, index), spec.type)) return false;
  return index == std::string_view::npos || read_number(value.substr(index + 1), spec.index);
}

template <typename Field>
bool agrees(const Field& asked, const Field& found) {
  return !asked || asked == found;
}

}  // namespace

bool DeviceSpec::matches(const DeviceSpec& device) const {
  return agrees(job, device.job) && agrees(replica, device.replica) && agrees(task, device.task) &&
         agrees(type, device.type) && agrees(index, device.index);
}

std::string DeviceSpec::to_string() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += fmt::format("/replica:{}", *replica);
  if (task) text += fmt::format("/task:{}", *task);
  if (type) text += fmt::format("/device:{}:{}", *type, index ? std::to_string(*index) : "*");
  return text;
}

std::optional<DeviceSpec> parse_device_spec(std::string_view text) {
  DeviceSpec spec;
  if (text.empty() || text == "/") return spec;
  while (!text.empty()) {
    if (text[0] != '/') return std::nullopt;
    const auto end = text.find('/', 1);
    if (!read_component(text.substr(1, end == std::string_view::npos ? end : end - 1), spec))
      return std::nullopt;
    text = end == std::string_view::npos ? "" : text.substr(end);
  }
  return spec;
}

DeviceSpec merge_scopes(const DeviceSpec& outer, const DeviceSpec& inner) {
  return {inner.job ? inner.job : outer.job, inner.replica ? inner.replica : outer.replica,
          inner.task ? inner.task : outer.task, inner.type ? inner.type : outer.type,
          inner.index ? inner.index : outer.index};
}

std::string local_device_name(std::string_view type, int index) {
  return fmt::format("/job:localhost/replica:0/task:0/device:{}:{}", type, index);
}

}  // namespace kolo
