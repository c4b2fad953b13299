#include <kolo/models/data.h>

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/models/paths.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPixels = 3 * 32 * 32;
constexpr std::int64_t kRecord = 1 + kPixels;
constexpr std::uint8_t kMaxLabel = 9;
constexpr int kTrainFiles = 5;
constexpr std::uint64_t kMostNameBytes = 65536;

using detail::is_file;

fs::path train_file(const fs::path& folder, int number) {
  return folder / fmt::format("data_batch_{}.bin", number);
}
fs::path test_file(const fs::path& folder) { return folder / "test_batch.bin"; }

std::vector<fs::path> files_of(const fs::path& folder, Split split) {
  if (split == Split::test) return {test_file(folder)};
  std::vector<fs::path> files = {train_file(folder, 1)};
  for (int i = 2; i <= kTrainFiles && is_file(train_file(folder, i)); ++i)
    files.push_back(train_file(folder, i));
  for (int i = static_cast<int>(files.size()) + 2; i <= kTrainFiles; ++i)
    if (is_file(train_file(folder, i)))
      throw NotFoundError(
          "{}: it is not there, and {} is; the batches of CIFAR-10 count from 1 without a gap",
          train_file(folder, static_cast<int>(files.size()) + 1).string(),
          train_file(folder, i).filename().string());
  return files;
}

std::int64_t records_of(const InputFile& file, const fs::path& path) {
  const auto bytes = static_cast<std::int64_t>(file.bytes());
  if (bytes == 0 || bytes % kRecord != 0)
    throw DataLossError("{}: {} bytes; CIFAR-10 has records of {} bytes, a label and 3×32×32 pixels",
                        path.string(), bytes, kRecord);
  return bytes / kRecord;
}

// Into the data set's samples from `first` on.
void read_records(InputFile& file, const fs::path& path, std::int64_t count, std::int64_t first,
                  const Dataset& dataset) {
  std::uint8_t* const labels = dataset.labels.data<std::uint8_t>() + first;
  std::uint8_t* const pixels = dataset.images.data<std::uint8_t>() + first * kPixels;
  std::uint8_t record[kRecord];
  for (std::int64_t i = 0; i < count; ++i) {
    file.read(static_cast<std::uint64_t>(i * kRecord), record, kRecord);
    if (record[0] > kMaxLabel)
      throw InvalidArgumentError("{}: label {} in record {}; labels are 0 to {}", path.string(),
                                 int{record[0]}, i, int{kMaxLabel});
    labels[i] = record[0];
    std::memcpy(pixels + i * kPixels, record + 1, kPixels);
  }
}

// A name a line.
std::vector<std::string> class_names_of(const fs::path& folder) {
  const fs::path path = folder / "batches.meta.txt";
  if (!is_file(path))
    return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  std::istringstream lines(InputFile(path.string()).read_all(kMostNameBytes));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != kMaxLabel + 1)
    throw InvalidArgumentError("{}: {} names of classes; there must be {}, one a line", path.string(),
                               names.size(), kMaxLabel + 1);
  return names;
}

}  // namespace

bool is_cifar10(const fs::path& folder) { return is_file(train_file(folder, 1)) || has_cifar10_test(folder); }
bool has_cifar10_test(const fs::path& folder) { return is_file(test_file(folder)); }

Dataset load_cifar10(const fs::path& folder, Split split) {
  const std::vector<fs::path> paths = files_of(folder, split);
  std::vector<InputFile> files;
  std::vector<std::int64_t> records;
  std::int64_t samples = 0;
  for (const fs::path& path : paths) {
    files.emplace_back(path.string());
    records.push_back(records_of(files.back(), path));
    samples += records.back();
  }
  Dataset dataset{Tensor(DType::u8, {samples, 3, 32, 32}), Tensor(DType::u8, {samples}), "CIFAR-10",
                  class_names_of(folder)};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    read_records(files[i], paths[i], records[i], first, dataset);
    first += records[i];
  }
  return dataset;
}

Tensor read_cifar10_images(const fs::path& path) {
  InputFile file(path.string());
  const std::int64_t count = records_of(file, path);
  const Dataset dataset{Tensor(DType::u8, {count, 3, 32, 32}), Tensor(DType::u8, {count}), ""};
  read_records(file, path, count, 0, dataset);
  return dataset.images;
}

}  // namespace kolo::models
