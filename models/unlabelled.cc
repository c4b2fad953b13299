#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/models/paths.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;
using Part = std::shared_ptr<const SampleSet>;

// MNIST's and Fashion-MNIST's images, by the name that both give them.
bool is_idx_name(const fs::path& path) {
  return path.filename().string().find("idx3-ubyte") != std::string::npos;
}

// One set after the other.
class JoinedSamples final : public SampleSet {
 public:
  JoinedSamples(const SampleKind& kind, std::vector<Part> parts) : SampleSet(kind), parts_(std::move(parts)) {
    std::int64_t end = 0;
    for (const Part& part : parts_) ends_.push_back(end += part->size());
  }

  std::int64_t size() const override { return ends_.back(); }
  void read(std::int64_t index, CounterRandom* random, const Batch& batch,
            std::int64_t place) const override {
    const auto part = std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin();
    const std::int64_t begin = part == 0 ? 0 : ends_[static_cast<std::size_t>(part) - 1];
    parts_[static_cast<std::size_t>(part)]->read(index - begin, random, batch, place);
  }

 private:
  std::vector<Part> parts_;
  std::vector<std::int64_t> ends_;  // of each part, in samples
};

class Collector {
 public:
  Collector(Shape sample, std::shared_ptr<const TableSchema> table, const detail::NumberSizes& trained)
      : sample_(std::move(sample)), table_(std::move(table)), trained_(trained) {}

  void take(const std::string& given) {
    const fs::path path(given);
    if (detail::is_folder(path)) take_folder(path);
    else if (!detail::is_file(path)) throw NotFoundError("{}: there is no such file or folder", given);
    else if (is_image_name(path)) take_picture(path);
    else if (is_table_name(path)) take_table(path);
    else if (path.extension() == ".npy") take_array(path, read_npy_samples(path, sample_));
    else if (is_idx_name(path)) take_array(path, idx_samples(path));
    else if (path.extension() == ".bin") take_array(path, cifar10_samples(path));
    else
      throw InvalidArgumentError(
          "{}: nothing that can be predicted; it must be a picture ({}), a table (.csv), an "
          "array (.npy), images in MNIST's format (…idx3-ubyte) or CIFAR-10's (.bin) or a folder of pictures",
          given, image_endings());
  }

  UnlabelledSamples finish() {
    end_pictures();
    if (parts_.empty()) throw InvalidArgumentError("there are no files to predict");
    SampleKind kind = parts_.front()->kind();
    for (const Part& part : parts_) kind.decoded |= part->kind().decoded;
    for (const Part& part : parts_) kind.are_pixels &= part->kind().are_pixels;
    if (parts_.size() > 1) found_.samples = std::make_shared<JoinedSamples>(kind, parts_);
    else found_.samples = parts_.front();
    found_.left_out = left_out_text(left_out_);
    return std::move(found_);
  }

 private:
  void take_picture(const fs::path& path) {
    if (sample_.rank() != 3)
      throw InvalidArgumentError(
          "{}: a picture, and the model takes {} and no images; name tables (.csv) or arrays (.npy)",
          path.string(), sample_);
    pictures_.files.push_back(path);
    pictures_.labels.push_back(0);
    found_.names.push_back(path.string());
  }

  void take_folder(const fs::path& path) {
    if (sample_.rank() != 3)
      throw InvalidArgumentError(
          "{}: a folder, and the model takes {} and no images; name the files in it: tables (.csv) or arrays "
          "(.npy)",
          path.string(), sample_);
    const std::vector<fs::path> files = images_below(path, left_out_);
    if (files.empty())
      throw InvalidArgumentError("{}: there are no pictures in the folder; they must end in {}",
                                 path.string(), image_endings());
    for (const fs::path& file : files) take_picture(file);
  }

  void take_table(const fs::path& path) {
    if (sample_.rank() != 1)
      throw InvalidArgumentError("{}: a table, and the model takes {}; name pictures or arrays (.npy)",
                                 path.string(), sample_);
    if (!table_) table_ = std::make_shared<const TableSchema>(plain_table(sample_.dim(0)));
    const CsvTable rows = read_csv(path, {.known = table_, .labelled = false});
    if (!rows.note.empty()) found_.notes.push_back(fmt::format("{}: {}", path.string(), rows.note));
    found_.notes.insert(found_.notes.end(), rows.warnings.begin(), rows.warnings.end());
    for (const std::int64_t line : rows.lines)
      found_.names.push_back(fmt::format("{}:{}", path.string(), line));
    note_scale(path.string(), detail::sizes_of_numbers(rows.x));
    take_tensor(path, rows.x);
  }

  Tensor idx_samples(const fs::path& path) const {
    const Tensor images = read_idx(path, 3);
    const Shape& read = images.shape();
    if (sample_ != Shape({1, read.dim(1), read.dim(2)}))
      throw InvalidArgumentError("{}: images of {}×{}; the model takes {}", path.string(), read.dim(1),
                                 read.dim(2), sample_);
    return images.reshaped({read.dim(0), 1, read.dim(1), read.dim(2)});
  }

  Tensor cifar10_samples(const fs::path& path) const {
    if (sample_ != Shape({3, 32, 32}))
      throw InvalidArgumentError("{}: a .bin file holds images of CIFAR-10, 3×32×32; the model takes {}",
                                 path.string(), sample_);
    return read_cifar10_images(path);
  }

  void take_array(const fs::path& path, const Tensor& x) {
    for (std::int64_t i = 0; i < x.shape().dim(0); ++i)
      found_.names.push_back(fmt::format("{}[{}]", path.string(), i));
    note_scale(path.string(), detail::sizes_of_numbers(x));
    take_tensor(path, x);
  }

  void note_scale(const std::string& name, const detail::NumberSizes& sizes) {
    std::string warning = detail::scale_warning(name, sizes, trained_);
    if (!warning.empty()) found_.notes.push_back(std::move(warning));
  }

  void take_tensor(const fs::path& path, const Tensor& x) {
    end_pictures();
    parts_.push_back(array_samples(path.string(), x, Tensor::zeros(DType::i32, {x.shape().dim(0)})));
  }

  void end_pictures() {
    if (pictures_.files.empty()) return;
    const std::string first = pictures_.files.front().string();
    const std::int64_t others = std::ssize(pictures_.files) - 1;
    note_scale(others == 0 ? first : fmt::format("{} and {}", first, count_of(others, "other picture")),
               detail::kPixelSizes);
    parts_.push_back(folder_samples(std::exchange(pictures_, {}), sample_));
  }

  Shape sample_;
  std::shared_ptr<const TableSchema> table_;
  detail::NumberSizes trained_;
  ImageFolder pictures_;  // in a row, up to now
  std::vector<Part> parts_;
  LeftOut left_out_;
  UnlabelledSamples found_;
};

}  // namespace

UnlabelledSamples unlabelled_samples(const std::vector<std::string>& paths, const Shape& sample,
                                     std::shared_ptr<const TableSchema> table, std::optional<float> largest,
                                     std::optional<float> least) {
  Collector collector(sample, std::move(table), {.largest = largest, .least = least});
  for (const std::string& path : paths) collector.take(path);
  return collector.finish();
}

}  // namespace kolo::models
