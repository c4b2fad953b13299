#include <kolo/models/mnist.h>

#include <algorithm>
#include <cstdint>
#include <system_error>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/models/idx.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 28;
constexpr int kMaxLabel = 9;

bool is_folder(const fs::path& path) {
  std::error_code ignored;  // a path that cannot be examined is no folder to read from
  return fs::is_directory(path, ignored);
}

std::string images_name(Split split) {
  return split == Split::train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte";
}
std::string labels_name(Split split) {
  return split == Split::train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte";
}

// The plain file before the compressed one.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& file) {
  for (const auto& path : {folder / file, folder / (file + ".gz")}) {
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

fs::path need_file(const fs::path& folder, const std::string& file) {
  if (auto path = find_file(folder, file)) return *path;
  throw NotFoundError("{}: no such file, nor {}.gz", (folder / file).string(), file);
}

}  // namespace

fs::path find_mnist(const std::optional<std::string>& asked) {
  if (asked) {
    if (!is_folder(*asked)) throw NotFoundError("--data {}: no such folder", *asked);
    return *asked;
  }
  fs::path beside = fs::path("data") / "mnist";
  const auto root = env_string("KOLO_DATA_DIR");
  if (root) {
    if (!is_folder(*root))
      throw NotFoundError("KOLO_DATA_DIR=\"{}\" is not a folder; it must hold mnist/, or be unset", *root);
    if (auto folder = fs::path(*root) / "mnist"; is_folder(folder)) return folder;
  }
  if (is_folder(beside)) return beside;
  throw NotFoundError(
      "no MNIST data: neither {} nor {} is a folder; give --data DIR, --data generated, or run "
      "scripts/download_mnist.sh",
      root ? (fs::path(*root) / "mnist").string() : "$KOLO_DATA_DIR/mnist (KOLO_DATA_DIR is not set)",
      beside.string());
}

bool has_mnist_test(const fs::path& folder) {
  return find_file(folder, images_name(Split::test)) || find_file(folder, labels_name(Split::test));
}

Dataset load_mnist(const fs::path& folder, Split split) {
  const auto images_path = need_file(folder, images_name(split)),
             labels_path = need_file(folder, labels_name(split));
  Dataset dataset{read_idx(images_path, 3), read_idx(labels_path, 1), "MNIST"};
  const Shape& shape = dataset.images.shape();
  if (shape.dim(0) != dataset.size())
    throw InvalidArgumentError("{} holds {} images, {} holds {} labels; the counts must be equal",
                               images_path.string(), shape.dim(0), labels_path.string(), dataset.size());
  if (dataset.size() == 0) throw InvalidArgumentError("{}: holds no images", images_path.string());
  if (shape.dim(1) != kSide || shape.dim(2) != kSide)
    throw InvalidArgumentError("{}: images of {}×{}; expected {}×{}", images_path.string(), shape.dim(1),
                               shape.dim(2), kSide, kSide);
  const auto labels = dataset.labels.span<std::uint8_t>();
  const auto bad = std::find_if(labels.begin(), labels.end(), [](int label) { return label > kMaxLabel; });
  if (bad != labels.end())
    throw InvalidArgumentError("{}: label {} at index {}; labels are 0 to {}", labels_path.string(),
                               int{*bad}, bad - labels.begin(), kMaxLabel);
  return dataset;
}

}  // namespace kolo::models
