#include <kolo/core/training/checkpoint_state.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <kolo/core/base/log.h>
#include <kolo/core/training/durable_file.h>

namespace kolo {
namespace {

constexpr char kNewest[] = "model_checkpoint_path: ";
constexpr char kAll[] = "all_model_checkpoint_paths: ";

std::string quoted(const std::string& path) {
  std::string text = "\"";
  for (const char letter : path) {
    if (letter == '"' || letter == '\\') text += '\\';
    if (letter == '\n') text += "\\n";
    else text += letter;
  }
  return text + '"';
}

// The whole line after `key` as a quoted string.
std::optional<std::string> unquoted(const std::string& text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  std::string path;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '"') return std::nullopt;
    if (text[i] != '\\') {
      path += text[i];
      continue;
    }
    if (++i + 1 >= text.size()) return std::nullopt;
    path += text[i] == 'n' ? '\n' : text[i];
  }
  return path;
}

std::string join(const std::string& directory, const std::string& filename) {
  return (std::filesystem::path(directory) / filename).string();
}

}  // namespace

std::string checkpoint_state_text(const CheckpointState& state) {
  std::string text = kNewest + quoted(state.model_checkpoint_path) + "\n";
  for (const std::string& path : state.all_model_checkpoint_paths) text += kAll + quoted(path) + "\n";
  return text;
}

std::optional<CheckpointState> parse_checkpoint_state(const std::string& text) {
  if (text.empty() || text.back() != '\n') return std::nullopt;
  CheckpointState state;
  bool has_newest = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_newest = line.starts_with(kNewest);
    if (!is_newest && !line.starts_with(kAll)) return std::nullopt;
    const auto path = unquoted(line.substr(is_newest ? sizeof kNewest - 1 : sizeof kAll - 1));
    if (!path || path->empty() || (is_newest && has_newest)) return std::nullopt;
    if (is_newest) {
      state.model_checkpoint_path = *path;
      has_newest = true;
    } else {
      state.all_model_checkpoint_paths.push_back(*path);
    }
  }
  if (!has_newest) return std::nullopt;
  return state;
}

std::optional<CheckpointState> read_checkpoint_state(const std::string& directory,
                                                     const std::string& filename) {
  const std::string path = join(directory, filename);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  auto state = parse_checkpoint_state(text.str());
  if (!state)
    log_warning("Checkpoint ignored: {} is damaged; the folder's own files are taken instead", path);
  return state;
}

void write_checkpoint_state(const CheckpointState& state, const std::string& directory,
                            const std::string& filename) {
  DurableFile file(join(directory, filename));
  file.write(checkpoint_state_text(state));
  file.finish();
  file.publish();
  sync_directory(directory);
}

}  // namespace kolo
