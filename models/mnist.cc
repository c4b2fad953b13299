#include <kolo/models/data.h>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/models/paths.h>

namespace kolo::models {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::uint64_t kMostRatio = 100, kMostExpanded = std::uint64_t{64} << 20;

// Bytes of a gzip or plain file. zlib tells the two apart by the first two bytes.
class ByteReader {
 public:
  explicit ByteReader(const fs::path& path) : path_(path) {
    const InputFile file(path.string());  // regular files only: a pipe would be waited for
    bytes_ = file.bytes();
    const int own = fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0);
    file_ = own < 0 ? nullptr : gzdopen(own, "rb");
    if (file_ != nullptr) return;
    if (own >= 0) close(own);
    throw UnavailableError("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  }
  ~ByteReader() {
    if (file_ != nullptr) gzclose(file_);
  }
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  // What the file can hold by itself: images compress to a fifth, and those that are blank to a hundredth.
  std::uint64_t most_bytes() const { return std::max(kMostExpanded, kMostRatio * bytes_); }

  // The number of bytes read: fewer than asked only at the end of the file.
  std::size_t read(std::uint8_t* target, std::size_t bytes) {
    const int count = gzread(file_, target, static_cast<unsigned>(bytes));
    if (count == static_cast<int>(bytes)) return bytes;
    // A gzip stream that is cut gives what there is, then Z_BUF_ERROR.
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    if (code == Z_ERRNO)
      throw UnavailableError("{}: cannot be read: {}", path_.string(), std::strerror(errno));
    if (code == Z_BUF_ERROR) throw DataLossError("{}: truncated: its gzip stream has no end", path_.string());
    if (code != Z_OK) throw DataLossError("{}: damaged gzip data: {}", path_.string(), text);
    return static_cast<std::size_t>(count);
  }

 private:
  const fs::path& path_;
  gzFile file_ = nullptr;
  std::uint64_t bytes_ = 0;
};

void check_magic(const std::array<std::uint8_t, 4>& magic, int dimensions, const fs::path& path) {
  const auto found = fmt::format("magic 0x{:02x}{:02x}{:02x}{:02x}", magic[0], magic[1], magic[2], magic[3]);
  const auto wanted = fmt::format("0x0000{:02x}{:02x}", kUnsignedByte, dimensions);
  if (magic[0] != 0 || magic[1] != 0)
    throw InvalidArgumentError("{}: wrong {}: not an IDX file; expected {}", path.string(), found, wanted);
  if (magic[2] != kUnsignedByte)
    throw InvalidArgumentError(
        "{}: wrong {}: element type 0x{:02x}; expected 0x{:02x}, unsigned bytes (magic {})", path.string(),
        found, magic[2], kUnsignedByte, wanted);
  if (magic[3] != dimensions)
    throw InvalidArgumentError("{}: wrong {}: {} dimensions; expected {} (magic {})", path.string(), found,
                               magic[3], dimensions, wanted);
}

Shape read_header(ByteReader& file, int dimensions, const fs::path& path) {
  std::array<std::uint8_t, 4> word;
  if (file.read(word.data(), 4) != 4)
    throw DataLossError("{}: truncated: shorter than its magic number", path.string());
  check_magic(word, dimensions, path);
  std::vector<std::int64_t> dims;
  for (int i = 0; i < dimensions; ++i) {
    if (file.read(word.data(), 4) != 4)
      throw DataLossError("{}: truncated: ends within its {} dimensions", path.string(), dimensions);
    dims.push_back(std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
  }
  return Shape(std::move(dims));
}

// Elements as the header announces them, or as many as a tensor can ever have where their number is beyond 63
// bits.
std::int64_t announced_elements(const Shape& shape) {
  const auto& dims = shape.dims();
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    if (__builtin_mul_overflow(elements, dim, &elements)) return INT64_MAX;
  }
  return elements;
}

// At most `limit` bytes, up to the end of the file.
std::vector<std::uint8_t> read_payload(ByteReader& file, std::int64_t limit) {
  constexpr std::int64_t kChunk = 1 << 20;
  std::vector<std::uint8_t> payload;
  while (static_cast<std::int64_t>(payload.size()) < limit) {
    const auto before = payload.size();
    const auto asked = static_cast<std::size_t>(std::min(kChunk, limit - static_cast<std::int64_t>(before)));
    payload.resize(before + asked);
    const auto found = file.read(payload.data() + before, asked);
    payload.resize(before + found);
    if (found < asked) break;
  }
  return payload;
}

// Its header, and then, once the shape is the one that was wanted, its elements.
class IdxFile {
 public:
  IdxFile(const fs::path& path, int dimensions)
      : path_(path), file_(path_), shape_(read_header(file_, dimensions, path_)) {}
  const fs::path& path() const { return path_; }
  const Shape& shape() const { return shape_; }

  Tensor read() {
    const std::int64_t announced = announced_elements(shape_);
    if (static_cast<std::uint64_t>(announced) > file_.most_bytes())
      throw DataLossError(
          "{}: its header announces {} items, {} bytes of shape {}; a file of its size holds at most {}",
          path_.string(), shape_.dim(0), announced, shape_, file_.most_bytes());
    const auto payload = read_payload(file_, announced);
    if (static_cast<std::int64_t>(payload.size()) < announced)
      throw DataLossError(
          "{}: truncated: its header announces {} items, {} bytes of shape {}; the file holds {} bytes",
          path_.string(), shape_.dim(0), announced, shape_, payload.size());
    std::uint8_t extra;
    if (file_.read(&extra, 1) != 0)
      throw DataLossError("{}: trailing bytes after the {} bytes of shape {} that its header announces",
                          path_.string(), announced, shape_);
    Tensor tensor(DType::u8, shape_);
    std::copy(payload.begin(), payload.end(), tensor.data<std::uint8_t>());
    return tensor;
  }

 private:
  const fs::path path_;
  ByteReader file_;
  const Shape shape_;
};

}  // namespace

Tensor read_idx(const fs::path& path, int dimensions) { return IdxFile(path, dimensions).read(); }

namespace {

constexpr int kDigitSide = 28;
constexpr int kMaxDigit = 9;

using detail::is_folder;

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

// Before anything of the size that the headers announce is read: a small .gz can hold gigabytes.
void check_shapes(const IdxFile& images, const IdxFile& labels) {
  const Shape& shape = images.shape();
  if (shape.dim(0) != labels.shape().dim(0))
    throw InvalidArgumentError("{} holds {}, {} holds {}; the counts must be equal", images.path().string(),
                               count_of(shape.dim(0), "image"), labels.path().string(),
                               count_of(labels.shape().dim(0), "label"));
  if (shape.dim(0) == 0) throw InvalidArgumentError("{}: holds no images", images.path().string());
  if (shape.dim(1) != kDigitSide || shape.dim(2) != kDigitSide)
    throw InvalidArgumentError("{}: images of {}×{}; expected {}×{}", images.path().string(), shape.dim(1),
                               shape.dim(2), kDigitSide, kDigitSide);
}

}  // namespace

fs::path find_mnist(const std::optional<std::string>& asked) {
  if (asked) {
    if (!is_folder(*asked)) detail::throw_no_folder(*asked);
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

bool is_mnist(const fs::path& folder) {
  return find_file(folder, images_name(Split::train)) || find_file(folder, labels_name(Split::train)) ||
         has_mnist_test(folder);
}

bool has_mnist_test(const fs::path& folder) {
  return find_file(folder, images_name(Split::test)) || find_file(folder, labels_name(Split::test));
}

Dataset load_mnist(const fs::path& folder, Split split) {
  IdxFile images(need_file(folder, images_name(split)), 3),
      labels_file(need_file(folder, labels_name(split)), 1);
  check_shapes(images, labels_file);
  Dataset dataset{images.read(), labels_file.read(), fs::weakly_canonical(folder).filename().string()};
  const auto labels = dataset.labels.span<std::uint8_t>();
  const auto bad = std::find_if(labels.begin(), labels.end(), [](int label) { return label > kMaxDigit; });
  if (bad != labels.end())
    throw InvalidArgumentError("{}: label {} at index {}; labels are 0 to {}", labels_file.path().string(),
                               int{*bad}, bad - labels.begin(), kMaxDigit);
  return dataset;
}

}  // namespace kolo::models
