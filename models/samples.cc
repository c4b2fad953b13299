#include <kolo/models/samples.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

constexpr std::int64_t kMostClasses = 1'000'000;

// Of [C,H,W]; the one channel of grey becomes all three.
Picture as_picture(const std::uint8_t* pixels, const Shape& shape) {
  Picture picture{.height = shape.dim(1), .width = shape.dim(2), .rgb = {}};
  const std::int64_t plane = picture.height * picture.width, step = shape.dim(0) == 1 ? 0 : plane;
  for (std::int64_t i = 0; i < plane; ++i)
    for (std::int64_t c = 0; c < 3; ++c) picture.rgb.push_back(pixels[c * step + i]);
  return picture;
}

template <typename T>
std::vector<std::int64_t> counts_of(const Tensor& labels, std::int64_t classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const T label : labels.span<T>()) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

// Of 0 and 1, [N,labels].
std::vector<std::int64_t> counts_of_marks(const Tensor& y) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(y.shape().dim(1)));
  std::size_t i = 0;
  for (const float mark : y.span<float>()) counts[i++ % counts.size()] += mark == 1 ? 1 : 0;
  return counts;
}

class ImageSamples final : public SampleSet {
 public:
  ImageSamples(Dataset dataset, const Augmentation& augmentation)
      : SampleSet({.name = dataset.name,
                   .shape = {dataset.channels(), dataset.height(), dataset.width()},
                   .are_pixels = detail::keeps_pixels(augmentation),
                   .class_names = dataset.class_names,
                   .warnings = dataset.warnings,
                   .largest = 1,
                   .least = 0}),
        dataset_(std::move(dataset)),
        augmentation_(augmentation) {}

  std::int64_t size() const override { return dataset_.size(); }
  std::vector<std::int64_t> class_counts() const override {
    return counts_of<std::uint8_t>(dataset_.labels, kind().classes);
  }
  void read(std::int64_t index, CounterRandom* random, const Batch& batch,
            std::int64_t place) const override {
    const Shape& shape = kind().shape;
    const std::int64_t count = dataset_.pixels();
    const std::uint8_t* pixels = dataset_.images.data<std::uint8_t>() + index * count;
    std::vector<std::uint8_t> part;
    if (random != nullptr && augmentation_.least_area > 0) {
      const Picture picture = as_picture(pixels, shape);
      const PictureBox box =
          detail::draw_crop(augmentation_.least_area, picture.height, picture.width, *random);
      part.resize(static_cast<std::size_t>(count));
      resize_part(picture, box, shape.dim(0), shape.dim(1), shape.dim(2), part.data());
      pixels = part.data();
    }
    detail::write_image(pixels, shape, detail::draw_change(augmentation_, shape.dim(0), random),
                        batch.samples, place);
    batch.labels.data<std::int32_t>()[place] = dataset_.labels.data<std::uint8_t>()[index];
  }

 private:
  Dataset dataset_;
  Augmentation augmentation_;
};

class ArraySamples final : public SampleSet {
 public:
  ArraySamples(SampleKind kind, Tensor x, Tensor y)
      : SampleSet(of_pixels(std::move(kind), x.dtype() == DType::u8)), x_(std::move(x)), y_(std::move(y)) {}

  std::int64_t size() const override { return y_.shape().dim(0); }
  std::vector<std::int64_t> class_counts() const override {
    if (kind().label_kind == LabelKind::one_class) return counts_of<std::int32_t>(y_, kind().classes);
    if (kind().label_kind == LabelKind::numbers) return {};
    return counts_of_marks(y_);
  }
  void read(std::int64_t index, CounterRandom*, const Batch& batch, std::int64_t place) const override {
    const std::int64_t count = kind().shape.elements();
    if (batch.samples.dtype() == x_.dtype()) copy_sample(index, batch.samples, place);
    else
      std::transform(x_.data<std::uint8_t>() + index * count, x_.data<std::uint8_t>() + (index + 1) * count,
                     batch.samples.data<float>() + place * count, detail::scaled);
    if (kind().label_kind != LabelKind::one_class)
      std::copy_n(y_.data<float>() + index * kind().classes, kind().classes,
                  batch.labels.data<float>() + place * kind().classes);
    else batch.labels.data<std::int32_t>()[place] = y_.data<std::int32_t>()[index];
  }

 private:
  void copy_sample(std::int64_t index, const Tensor& into, std::int64_t place) const {
    const auto bytes =
        static_cast<std::size_t>(kind().shape.elements()) * static_cast<std::size_t>(size_of(x_.dtype()));
    std::memcpy(into.raw() + static_cast<std::size_t>(place) * bytes,
                x_.raw() + static_cast<std::size_t>(index) * bytes, bytes);
  }
  static SampleKind of_pixels(SampleKind kind, bool are_pixels) {
    kind.are_pixels = are_pixels;
    return kind;
  }

  Tensor x_, y_;
};

// Of `each` numbers of each channel of a sample's pixels, or of its labels.
SampleStatistics statistics_of(const SampleSet& samples, std::int64_t most, std::int64_t channels,
                               std::int64_t each, Tensor Batch::*which) {
  const SampleKind& kind = samples.kind();
  const std::int64_t count = std::min(most, samples.size());
  // Of differences from the first number, so that nothing is lost where all are large and alike.
  std::vector<double> from(static_cast<std::size_t>(channels)), sum(from), squares(from);
  const Batch one{.samples = Tensor(DType::f32, batch_shape(kind, 1)),
                  .labels = Tensor(label_dtype(kind), labels_shape(kind, 1))};
  const auto values = (one.*which).span<float>();
  for (std::int64_t i = 0; i < count; ++i) {
    samples.read(i * samples.size() / count, nullptr, one, 0);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::size_t channel = k / static_cast<std::size_t>(each);
      if (i == 0 && k % static_cast<std::size_t>(each) == 0) from[channel] = values[k];
      const double difference = values[k] - from[channel];
      sum[channel] += difference;
      squares[channel] += difference * difference;
    }
  }
  SampleStatistics found;
  const auto n = static_cast<double>(count * each);
  for (std::size_t channel = 0; channel < sum.size(); ++channel) {
    const double mean = sum[channel] / n, variance = squares[channel] / n - mean * mean;
    found.mean.push_back(static_cast<float>(from[channel] + mean));
    found.deviation.push_back(variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1);
  }
  return found;
}

}  // namespace

std::string SampleKind::class_name(std::int64_t number) const {
  const auto place = static_cast<std::size_t>(number);
  if (place < class_names.size()) return class_names[place];
  return label_kind == LabelKind::numbers ? "number_" + std::to_string(number + 1) : std::to_string(number);
}

Shape batch_shape(const SampleKind& kind, std::int64_t samples) {
  std::vector<std::int64_t> dims = {samples};
  dims.insert(dims.end(), kind.shape.dims().begin(), kind.shape.dims().end());
  return Shape(std::move(dims));
}

DType label_dtype(const SampleKind& kind) {
  return kind.label_kind == LabelKind::one_class ? DType::i32 : DType::f32;
}

Shape labels_shape(const SampleKind& kind, std::int64_t samples) {
  return kind.label_kind == LabelKind::one_class ? Shape{samples * kind.labels}
                                                 : Shape{samples, kind.classes};
}

std::shared_ptr<const SampleSet> image_samples(Dataset dataset, const Augmentation& augmentation) {
  detail::check_augmentation(augmentation, dataset.channels());
  return std::make_shared<ImageSamples>(std::move(dataset), augmentation);
}

std::shared_ptr<const SampleSet> array_samples(std::string name, Tensor x, Tensor y, std::int64_t classes,
                                               std::string note) {
  return detail::array_samples_of(
      {.name = std::move(name), .shape = {}, .classes = classes, .note = std::move(note)}, std::move(x),
      std::move(y));
}

SampleStatistics statistics_of(const SampleSet& samples, std::int64_t most) {
  const SampleKind& kind = samples.kind();
  if (kind.dtype != DType::f32)
    throw InvalidArgumentError("{}: tokens are numbers of a list and have no mean", kind.name);
  const std::int64_t elements = kind.shape.elements();
  const std::int64_t channels = kind.shape.rank() == 3 ? kind.shape.dim(0) : elements;
  return statistics_of(samples, most, channels, elements / channels, &Batch::samples);
}

SampleStatistics label_statistics_of(const SampleSet& samples, std::int64_t most) {
  return statistics_of(samples, most, samples.kind().classes, 1, &Batch::labels);
}

}  // namespace kolo::models

namespace kolo::models::detail {

NumberSizes sizes_of_numbers(const Tensor& x) {
  NumberSizes sizes = kPixelSizes;
  if (x.dtype() != DType::u8) {
    float least = 0, greatest = 0;
    const auto numbers = x.span<float>();
    if (!numbers.empty()) least = greatest = numbers[0];
    for (const float number : numbers) least = std::min(least, number), greatest = std::max(greatest, number);
    sizes = {.largest = std::max(std::abs(least), std::abs(greatest)), .least = least};
  }
  sizes.are_images = x.shape().rank() == 4 && x.shape().dim(0) >= kManyImages;
  return sizes;
}

namespace {

template <typename T>
void check_numbers(const std::string& name, const Tensor& x) {
  const auto values = x.span<T>();
  const auto is_bad = [](T value) { return !std::isfinite(static_cast<float>(value)); };
  const auto first = std::find_if(values.begin(), values.end(), is_bad);
  if (first == values.end()) return;
  std::vector<std::int64_t> place(static_cast<std::size_t>(x.shape().rank()));
  std::int64_t rest = first - values.begin();
  for (int i = x.shape().rank() - 1; i >= 0; --i) {
    place[static_cast<std::size_t>(i)] = rest % x.shape().dim(i);
    rest /= x.shape().dim(i);
  }
  throw InvalidArgumentError(
      "{}: {} of {} numbers are NaN or infinite as f32, the first one x[{}], {}; all must be finite", name,
      std::count_if(first, values.end(), is_bad), values.size(), fmt::join(place, ","), *first);
}

}  // namespace

void check_finite(const std::string& name, const Tensor& x) {
  if (x.dtype() == DType::f32) check_numbers<float>(name, x);
  if (x.dtype() == DType::f64) check_numbers<double>(name, x);
}

std::string scale_warning(const std::string& name, std::optional<float> given, std::optional<float> trained) {
  // Nobody mistakes a dark picture, or a feature that has grown, for another scale.
  constexpr float kMuchLarger = 20, kMuchSmaller = 100;
  if (!given || !trained || *given == 0 || *trained == 0) return "";
  if (*given <= kMuchLarger * *trained && *given * kMuchSmaller >= *trained) return "";
  const auto are_bytes = [](float one) { return one > 1 && one <= 255; };
  return fmt::format("{}: its numbers are up to {:g}, and the model was trained on numbers up to {:g}; {}",
                     name, *given, *trained,
                     *trained <= 1 && are_bytes(*given)
                         ? "pixels must be divided by 255, or be u1, which kolo divides"
                     : *given <= 1 && are_bytes(*trained)
                         ? "both must be of one scale: pixels of pictures, digits and u1 arrays are 0 to 1, "
                           "and the training's must be divided by 255, too"
                         : "both must be of one scale");
}

std::string scale_warning(const std::string& name, const NumberSizes& given, const NumberSizes& trained) {
  // Of the largest. Images have dark pixels, which a mean and a deviation bring below 0: digits to -0.42 of
  // 2.8. Enlarging them by bicubic interpolation brings them to -0.135 of 1.
  constexpr float kMuchBelow = 0.5, kBelowOfImages = 0.3, kStillBelowOfImages = 0.1;
  const float below = given.are_images ? kBelowOfImages : kMuchBelow;
  std::string warning = scale_warning(name, given.largest, trained.largest);
  if (!warning.empty() || !given.least || !trained.least || !given.largest || !trained.largest)
    return warning;
  const bool have_become = *trained.least >= 0 && *given.least <= -below * *trained.largest;
  const bool are_gone = given.are_images && *given.largest > 0 && *given.least >= 0 &&
                        *trained.least <= -kStillBelowOfImages * *trained.largest;
  if (!have_become && !are_gone) return "";
  return fmt::format(
      "{}: its numbers start at {:g}, and the training's were {:g} to {:g}; both must be of one scale", name,
      *given.least, *trained.least, *trained.largest);
}

namespace {

std::shared_ptr<const SampleSet> samples_with_numbers(SampleKind kind, Tensor x, Tensor y) {
  if (x.shape().rank() < 2 || y.dtype() != DType::f32 || y.shape().rank() != 2 ||
      x.shape().dim(0) != y.shape().dim(0) || x.elements() == 0 || y.elements() == 0)
    throw InvalidArgumentError(
        "{}: samples {} {} with numbers {} {}; they must be f32 or u8 [N,…] and f32 [N,outputs], with "
        "something in them",
        kind.name, x.dtype(), x.shape(), y.dtype(), y.shape());
  const auto numbers = y.span<float>();
  const auto bad =
      std::find_if(numbers.begin(), numbers.end(), [](float one) { return !std::isfinite(one); });
  kind.classes = y.shape().dim(1);
  if (bad != numbers.end())
    throw InvalidArgumentError("{}: the number of sample {} is {}; it must be finite", kind.name,
                               (bad - numbers.begin()) / kind.classes, *bad);
  kind.shape = Shape(std::vector<std::int64_t>(x.shape().dims().begin() + 1, x.shape().dims().end()));
  return std::make_shared<ArraySamples>(std::move(kind), std::move(x), std::move(y));
}

}  // namespace

std::shared_ptr<const SampleSet> array_samples_of(SampleKind kind, Tensor x, Tensor y) {
  if (kind.label_kind != LabelKind::one_class)
    return samples_with_numbers(std::move(kind), std::move(x), std::move(y));
  if ((x.dtype() != DType::f32 && x.dtype() != DType::u8) || y.dtype() != DType::i32 ||
      x.shape().rank() < 2 || y.shape().rank() != 1 || x.shape().dim(0) != y.shape().dim(0) ||
      x.elements() == 0)
    throw InvalidArgumentError(
        "{}: samples {} {} with labels {} {}; they must be f32 or u8 [N,…] and i32 [N], with something in "
        "them",
        kind.name, x.dtype(), x.shape(), y.dtype(), y.shape());
  const auto labels = y.span<std::int32_t>();
  if (kind.classes > kMostClasses)
    throw InvalidArgumentError(
        "{}: labels up to {} would be {} classes; there may be a million, counted from 0 without gaps, and "
        "--loss mse finds numbers",
        kind.name, kind.classes - 1, kind.classes);
  const std::int64_t most = kind.classes > 0 ? kind.classes : kMostClasses;
  const auto bad = std::find_if(labels.begin(), labels.end(),
                                [&](std::int32_t label) { return label < 0 || label >= most; });
  if (bad != labels.end())
    throw InvalidArgumentError("{}: label {} of sample {}; labels are 0 to {}", kind.name, *bad,
                               bad - labels.begin(), most - 1);
  if (kind.classes == 0) kind.classes = *std::max_element(labels.begin(), labels.end()) + 1;
  kind.shape = Shape(std::vector<std::int64_t>(x.shape().dims().begin() + 1, x.shape().dims().end()));
  return std::make_shared<ArraySamples>(std::move(kind), std::move(x), std::move(y));
}

}  // namespace kolo::models::detail
