#include <kolo/core/device/device_name.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

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

bool is_legacy_type(std::string_view word) {
  return word == "cpu" || word == "CPU" || word == "gpu" || word == "GPU";
}

bool read_component(std::string_view component, DeviceSpec& spec) {
  const auto colon = component.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view key = component.substr(0, colon), value = component.substr(colon + 1);
  if (key == "job") return read_word(value, spec.job);
  if (key == "replica") return read_number(value, spec.replica);
  if (key == "task") return read_number(value, spec.task);
  if (is_legacy_type(key)) {
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

template <typename Field>
bool clashes(const Field& a, const Field& b) {
  return a && b && a != b;
}

template <typename Field>
const Field& either(const Field& first, const Field& second) {
  return first ? first : second;
}

std::string address_space(const DeviceSpec& device) {
  return DeviceSpec{device.job, device.replica, device.task, {}, {}}.to_string();
}

}  // namespace

bool DeviceSpec::matches(const DeviceSpec& device) const {
  return agrees(job, device.job) && agrees(replica, device.replica) && agrees(task, device.task) &&
         agrees(type, device.type) && agrees(index, device.index);
}

bool DeviceSpec::is_compatible_with(const DeviceSpec& other) const {
  return !clashes(job, other.job) && !clashes(replica, other.replica) && !clashes(task, other.task) &&
         !clashes(type, other.type) && !clashes(index, other.index);
}

bool DeviceSpec::shares_address_space_with(const DeviceSpec& other) const {
  return job == other.job && replica == other.replica && task == other.task;
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

std::optional<DeviceSpec> parse_local_device_name(std::string_view text) {
  const auto colon = text.find(':');
  DeviceSpec spec;
  if (colon == std::string_view::npos || !is_identifier(text.substr(0, colon))) return std::nullopt;
  spec.type = std::string(text.substr(0, colon));
  if (!read_number(text.substr(colon + 1), spec.index) || !spec.index) return std::nullopt;
  return spec;
}

DeviceSpec parse_scope_device(std::string_view text) {
  std::string full;
  int device_components = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    std::string part(text.substr(begin, end - begin));
    begin = end + 1;
    if (part.empty()) continue;
    const std::string key = part.substr(0, part.find(':'));
    if (is_legacy_type(key) || key == "device") {
      if (++device_components > 1)
        throw InvalidArgumentError("Cannot specify multiple device types: {}", text);
    } else if (key != "job" && key != "replica" && key != "task") {
      throw InvalidArgumentError("Unknown attribute: '{}' in '{}'", key, text);
    }
    if (is_legacy_type(part)) part += ":*";
    full += '/' + part;
  }
  auto spec = parse_device_spec(full);
  if (!spec) throw InvalidArgumentError("Malformed device specification '{}'", text);
  if (spec->type == "cpu") spec->type = "CPU";
  if (spec->type == "gpu") spec->type = "GPU";
  return *spec;
}

std::string complete_device_name(std::string_view name, std::string_view base) {
  const auto full = parse_device_spec(base);
  if (!full || !full->is_full()) throw InvalidArgumentError("Basename: {} should be fully specified.", base);
  auto spec = parse_local_device_name(name);
  if (!spec) spec = parse_device_spec(name);
  if (!spec) throw InvalidArgumentError("Could not parse {} into a device specification.", name);
  return merge_scopes(*full, *spec).to_string();
}

std::vector<std::string> lookup_names(const DeviceSpec& device) {
  return {device.to_string(), fmt::format("{}/{}:{}", address_space(device), lower_case(device.type.value()),
                                          device.index.value())};
}

std::vector<std::string> local_lookup_names(const DeviceSpec& device) {
  const std::string local = fmt::format("{}:{}", device.type.value(), device.index.value());
  return {"/device:" + local, local};
}

DeviceSpec merge_scopes(const DeviceSpec& outer, const DeviceSpec& inner) {
  return {either(inner.job, outer.job), either(inner.replica, outer.replica), either(inner.task, outer.task),
          either(inner.type, outer.type), either(inner.index, outer.index)};
}

DeviceSpec merge_constraints(const DeviceSpec& a, const DeviceSpec& b, Conflict on_conflict) {
  const auto refuse = [&](const char* fields) {
    throw InvalidArgumentError("Cannot merge devices with incompatible {}: '{}' and '{}'", fields,
                               a.to_string(), b.to_string());
  };
  if (clashes(a.job, b.job)) refuse("jobs");
  if (clashes(a.replica, b.replica)) refuse("replicas");
  if (clashes(a.task, b.task)) refuse("tasks");
  if (on_conflict == Conflict::error && clashes(a.type, b.type)) refuse("types");
  if (on_conflict == Conflict::error && clashes(a.index, b.index)) refuse("ids");
  DeviceSpec merged = merge_scopes(a, b);  // b's type and index win, as override asks
  if (on_conflict == Conflict::soft) {
    if (clashes(a.type, b.type)) merged.type.reset(), merged.index.reset();
    if (clashes(a.index, b.index)) merged.index.reset();
  }
  return merged;
}

std::string local_device_name(std::string_view type, int index) {
  return fmt::format("/job:localhost/replica:0/task:0/device:{}:{}", type, index);
}

}  // namespace kolo
