#include <kolo/core/device/engine_book.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>

namespace kolo {
namespace {

constexpr char kVersion[] = "kolo_engines";

EngineEntry entry_of(const nlohmann::json& json) {
  EngineEntry entry{json.at("machine").get<std::string>(), json.at("question").get<std::string>(), {}};
  entry.choice.engine = json.at("engine").get<std::int64_t>();
  entry.choice.place = json.at("place").get<std::int64_t>();
  entry.choice.by_time = json.contains("milliseconds");
  if (entry.choice.by_time) entry.choice.milliseconds = json.at("milliseconds").get<double>();
  return entry;
}

nlohmann::json json_of(const EngineEntry& entry) {
  nlohmann::json json = {{"machine", entry.machine},
                         {"question", entry.question},
                         {"engine", entry.choice.engine},
                         {"place", entry.choice.place}};
  if (entry.choice.by_time) json["milliseconds"] = entry.choice.milliseconds;
  return json;
}

struct Folder {
  Mutex mutex;
  std::string path KOLO_GUARDED_BY(mutex);
  std::map<std::string, std::unique_ptr<EngineBook>> books KOLO_GUARDED_BY(mutex);
};
// Never destroyed: sessions that end late still plan.
Folder& folder_of_process() {
  static auto* const folder = new Folder;
  return *folder;
}

}  // namespace

std::vector<EngineEntry> read_engine_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_file_error("read " + path, errno);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (json.at(kVersion).get<int>() != 1)
      throw DataLossError("{}: its version is {}; this kolo knows 1", path, json_text(json.at(kVersion)));
    std::vector<EngineEntry> entries;
    for (const nlohmann::json& entry : json.at("engines")) entries.push_back(entry_of(entry));
    return entries;
  } catch (const nlohmann::json::exception& error) {
    throw DataLossError("{} is no file of engines, or it is damaged: {}", path, error.what());
  }
}

EngineBook::EngineBook(std::string path) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_)) return;
  try {
    entries_ = read_engine_file(path_);
  } catch (const Error& error) {
    log_warning("{}; engines are chosen anew", error.what());
  }
}

std::optional<EngineChoice> EngineBook::find(const std::string& machine, const std::string& question) {
  const MutexLock lock(mutex_);
  const auto is_of_machine = [&](const EngineEntry& entry) { return entry.machine == machine; };
  for (const EngineEntry& entry : entries_)
    if (is_of_machine(entry) && entry.question == question) return entry.choice;
  // What another library of this machine was asked is no other machine's.
  const auto other = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const EngineEntry& entry) { return entry.question == question; });
  if (!told_of_others_ && other != entries_.rend() &&
      std::none_of(entries_.begin(), entries_.end(), is_of_machine)) {
    told_of_others_ = true;
    log_info("{} holds engines for {}; this is {}, for which they are chosen anew", path_, other->machine,
             machine);
  }
  return std::nullopt;
}

void EngineBook::note(const std::string& machine, const std::string& question, const EngineChoice& choice) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const EngineEntry& entry) {
    return entry.machine == machine && entry.question == question;
  });
  if (found != entries_.end()) found->choice = choice;
  else entries_.push_back({machine, question, choice});
  try {
    write();
  } catch (const std::exception& error) {
    if (!std::exchange(told_of_failure_, true))
      log_warning("engines that were chosen are not kept, so that a resumed run may choose others: {}",
                  error.what());
  }
}

void EngineBook::write() const {
  nlohmann::json all = nlohmann::json::array();
  for (const EngineEntry& entry : entries_) all.push_back(json_of(entry));
  std::filesystem::create_directories(folder_of(path_));
  write_durable_file(path_, json_text(nlohmann::json{{kVersion, 1}, {"engines", all}}, 1) + "\n");
}

EngineBook* engine_book() {
  static const std::string named = env_string("KOLO_ENGINES").value_or("");
  Folder& folder = folder_of_process();
  const MutexLock lock(folder.mutex);
  if (named.empty() && folder.path.empty()) return nullptr;
  // Other ranks than the first need no access to the folder of checkpoints.
  if (named.empty() && process().rank > 0 && !std::filesystem::is_directory(folder.path)) return nullptr;
  std::string path = named.empty() ? folder.path + "/engines.json" : named;
  if (process().size > 1) path += fmt::format(".{}", process().rank);
  auto& book = folder.books[path];
  if (!book) book = std::make_unique<EngineBook>(path);
  return book.get();
}

void propose_engine_folder(const std::string& folder) {
  const MutexLock lock(folder_of_process().mutex);
  folder_of_process().path = folder;
}

}  // namespace kolo
