// Samples with their labels, in memory or read when they are asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/pictures.h>

namespace kolo::models {

/// What the labels of samples are, and so what the outputs of a model for them mean.
enum class LabelKind {
  one_class,  // each sample is of one class: outputs become shares by softmax
  numbers,    // as many numbers as outputs are to be found (regression)
  several,    // each of the labels is there or not, 1 or 0: outputs become probabilities by sigmoid
};

/// As JSON files keep it: two keys, of which "regression" is that of folders of earlier versions.
inline constexpr char kRegressionKey[] = "regression", kSeveralLabelsKey[] = "several_labels";
constexpr LabelKind label_kind_of(bool regression, bool several_labels) {
  if (several_labels) return LabelKind::several;
  return regression ? LabelKind::numbers : LabelKind::one_class;
}

// Random numbers that are the same on every machine: each depends on (seed, purpose, index, position) and
// nothing else.

/// What the numbers are drawn for. The value is part of the stream: renumbering would change every picture
/// and order.
enum class RandomPurpose : std::uint64_t {
  sample_order = 1,
  digit_labels = 2,
  digit_shape = 3,
  digit_noise = 4,
  text_pieces = 5,
  sample_changes = 6,
  testing_part = 7
};

/// SplitMix64: the n-th number is a hash of key + n · γ (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014; constants of Vigna's splitmix64.c). The standard library's distributions
/// and std::shuffle are not used for data: their results differ between implementations. One thread at a
/// time.
class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, RandomPurpose purpose, std::uint64_t index)
      : counter_(mix(mix(mix(seed + kGamma) + static_cast<std::uint64_t>(purpose)) + index)) {}

  std::uint64_t next() { return mix(counter_ += kGamma); }

  /// Uniform in [0, bound), bound > 0, without bias: Lemire, "Fast random integer generation in an interval",
  /// 2019.
  std::uint64_t below(std::uint64_t bound) {
    auto product = static_cast<Wide>(next()) * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t rejected = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < rejected) product = static_cast<Wide>(next()) * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  /// Uniform in [low, high), in steps of (high − low) / 2^53.
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }

 private:
  __extension__ using Wide = unsigned __int128;  // no name of ISO C++
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t counter_;
};

// Labelled images in memory: what every source of them hands to the batches.

/// validation: what a training is evaluated with while it learns. Only folders of pictures tell it from test.
enum class Split { train, test, validation };
/// "train", else "test".
inline const char* name(Split split) { return split == Split::train ? "train" : "test"; }

/// A copy shares the pixels.
struct Dataset {
  Tensor images;     // u8 [N,C,H,W], or [N,H,W] of one channel; digits: [N,28,28], 0 is paper
  Tensor labels;     // u8 [N], 0 … 9
  std::string name;  // for outputs: "MNIST", "generated digits", "CIFAR-10"
  std::vector<std::string> class_names = {};  // by label; empty: they are numbers
  std::vector<std::string> warnings = {};     // SampleKind::warnings

  std::int64_t size() const { return labels.elements(); }
  std::int64_t channels() const { return images.shape().rank() == 4 ? images.shape().dim(1) : 1; }
  std::int64_t height() const { return images.shape().dim(-2); }
  std::int64_t width() const { return images.shape().dim(-1); }
  std::int64_t pixels() const { return channels() * height() * width(); }  // of one image
};

// Labelled samples of any kind, read one by one in any order: what batches are made of.

struct TableSchema;

/// What a training step is fed with.
struct Batch {
  // f32 [B,C,H,W] or [B,…], pixels ÷ 255, or u8 as they are (BatchOptions::as_pixels); i32 [B,T] of tokens.
  Tensor samples;
  Tensor labels;  // i32 [B]; of tokens [B·T]; of numbers and of several labels f32 [B,outputs]
  // Of Batches: the loss, a mean over these samples, times this and averaged over the ranks is the mean over
  // the samples of the step. 1 where all ranks have as many samples; 0: they stand in for none, and other
  // ranks have them, too.
  float weight = 1;
};

/// What all samples of a set have in common.
struct SampleKind {
  std::string name;                             // for outputs: "MNIST", "flowers"
  Shape shape;                                  // of one sample: [C,H,W] for an image
  std::int64_t classes = 10;                    // columns of a model's output
  LabelKind label_kind = LabelKind::one_class;  // of others each sample has `classes` numbers
  DType dtype = DType::f32;                     // i32: tokens
  std::int64_t labels = 1;                      // of one sample; of T tokens T
  bool decoded = false;                         // files are decoded for each sample: worth several threads
  bool are_pixels = false;                      // u8 ÷ 255 each: they can be read as they are
  std::string note = {};  // what of the files was taken for what, and what was left out; for outputs
  std::vector<std::string> class_names = {};           // or of the outputs; empty: they have none
  std::shared_ptr<const TableSchema> table = nullptr;  // of a table: what its columns mean
  // Of pictures whose table tells numbers to find: its labels' columns, and how their numbers are written.
  std::shared_ptr<const TableSchema> label_table = nullptr;
  std::vector<std::string> warnings = {};  // what may not be as the owner of the files thinks, a line each
  // The largest absolute number of the samples, where it was looked for: of arrays, after u8 became 0 to 1,
  // and of all pictures 1, as pixels are 0 to 1.
  std::optional<float> largest = {};
  std::optional<float> least = {};          // number of them, with its sign; of pictures 0
  std::optional<float> largest_label = {};  // the same of numbers to find, of pictures

  /// "cat", or "3" where the classes have no names; of numbers to find "number_4".
  std::string class_name(std::int64_t number) const;
};

/// [samples, the kind's shape…].
Shape batch_shape(const SampleKind& kind, std::int64_t samples);

/// What labels of so many samples are made of.
DType label_dtype(const SampleKind& kind);
Shape labels_shape(const SampleKind& kind, std::int64_t samples);

/// Any number of threads read at the same time.
class SampleSet {
 public:
  virtual ~SampleSet() = default;
  const SampleKind& kind() const { return kind_; }
  virtual std::int64_t size() const = 0;
  /// How many samples each class, or each of several labels, has, as many as there are; empty where nobody
  /// knows.
  virtual std::vector<std::int64_t> class_counts() const { return {}; }
  /// Sample `index`, 0 … size() − 1, becomes sample `place` of the batch, whose tensors are of the kind's
  /// types and shapes; where they are pixels the batch's samples may be u8, too. Labels are 0 … classes − 1,
  /// or numbers; of several labels 0 and 1. random: what changes the sample in training is drawn from it;
  /// nullptr: the sample as it is. The same index and numbers give the same bytes. Throws what keeps the
  /// sample from being read, with the name of its file.
  virtual void read(std::int64_t index, CounterRandom* random, const Batch& batch,
                    std::int64_t place) const = 0;

 protected:
  explicit SampleSet(SampleKind kind) : kind_(std::move(kind)) {}

 private:
  SampleKind kind_;
};

/// The images of a data set, [C,H,W]. Throws InvalidArgumentError for an augmentation out of range, and for
/// crops of images that have neither 1 nor 3 channels.
std::shared_ptr<const SampleSet> image_samples(Dataset dataset, const Augmentation& augmentation = {});

/// Arrays in memory: x [N,…], f32 or u8 (then ÷ 255), and y i32 [N], each 0 … classes − 1; classes 0: the
/// largest y and 1 more. Throws InvalidArgumentError for other types or shapes, for N = 0, and for a y that
/// is negative or no class (its place named), or beyond a million.
std::shared_ptr<const SampleSet> array_samples(std::string name, Tensor x, Tensor y, std::int64_t classes = 0,
                                               std::string note = {});

/// Mean and standard deviation of what samples hold: of each channel of images [C,H,W], of each element of
/// samples of other shapes. A deviation of 0 is given as 1.
struct SampleStatistics {
  std::vector<float> mean, deviation;  // [C], or as many as elements
};
/// Over `most` samples that stand evenly in the set, or all. Throws InvalidArgumentError for tokens, and what
/// reading throws.
SampleStatistics statistics_of(const SampleSet& samples, std::int64_t most = 10000);
/// The same of each number that is to be found.
SampleStatistics label_statistics_of(const SampleSet& samples, std::int64_t most = 10000);

// Samples that are decoded from files, each from its own.

/// Any number of threads check and read at the same time.
class FileSamples : public SampleSet {
 public:
  /// Throws what would keep a sample from being read, as far as the beginning of its file tells.
  virtual void check(std::int64_t index) const = 0;

 protected:
  explicit FileSamples(SampleKind kind) : SampleSet(std::move(kind)) {}
};

}  // namespace kolo::models
