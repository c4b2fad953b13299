#include <kolo/models/learnt_file.h>

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/log.h>

namespace kolo::models::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMark = sizeof(std::uint64_t);

std::string path_in(const std::string& folder, const LearntFile& file) { return folder + "/" + file.name; }

}  // namespace

LearntFile learnt_file_of(const LearntSamples& learnt) {
  const std::uint32_t sum = crc32c(learnt.marks.data(), learnt.marks.size() * kMark);
  return {.name = fmt::format("{}{:08x}.u64", kLearntFilePrefix, sum),
          .crc32c = sum,
          .marks = std::ssize(learnt.marks),
          .one_of = static_cast<std::int64_t>(learnt.one_of),
          .chance = learnt.chance};
}

void write_learnt_file(const std::string& folder, const LearntSamples& learnt) {
  const std::string path = path_in(folder, learnt_file_of(learnt));
  std::error_code ignored;
  if (fs::file_size(path, ignored) == learnt.marks.size() * kMark && !ignored) return;
  DurableFile file(path);
  file.write(learnt.marks.data(), learnt.marks.size() * kMark);
  file.finish();
  file.publish();
  sync_directory(folder);
}

void remove_other_learnt_files(const std::string& folder, const LearntFile& kept) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(kLearntFilePrefix) && name.ends_with(".u64") && name != kept.name)
      fs::remove(entry->path(), ignored);
  }
}

std::shared_ptr<const LearntSamples> read_learnt_file(const FolderConfig& config) {
  if (!config.learnt_file) return nullptr;
  const LearntFile& file = *config.learnt_file;
  const std::string path = path_in(config.folder, file);
  try {
    const std::string bytes = InputFile(path).read_all(static_cast<std::uint64_t>(file.marks) * kMark);
    if (bytes.size() != static_cast<std::size_t>(file.marks) * kMark ||
        crc32c(bytes.data(), bytes.size()) != file.crc32c)
      throw DataLossError("{}: it is not as it was written", path);
    LearntSamples learnt{
        .marks = {}, .one_of = static_cast<std::uint64_t>(file.one_of), .chance = file.chance};
    learnt.marks.resize(static_cast<std::size_t>(file.marks));
    if (!bytes.empty()) std::memcpy(learnt.marks.data(), bytes.data(), bytes.size());
    return std::make_shared<const LearntSamples>(std::move(learnt));
  } catch (const Error& error) {
    log_warning(
        "{}; how many samples for testing the training has learnt from is estimated by 64 of its samples",
        error.what());
    return nullptr;
  }
}

}  // namespace kolo::models::detail
