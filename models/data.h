// Readers of data: each kind of file becomes a Dataset, Samples or tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/graph/output.h>
#include <kolo/core/tensor/tensor.h>
#include <kolo/models/sample_digests.h>
#include <kolo/models/samples.h>
#include <kolo/models/tables.h>

namespace kolo::models {

/// How many files of which kind are not read: ".heic" → 180.
using LeftOut = std::map<std::string, std::int64_t>;
/// "left out: 180 .heic, 18 broken links"; "" for nothing.
std::string left_out_text(const LeftOut& left_out);

// Digits that kolo draws itself, for machines without MNIST: pen strokes with random distortion, thickness
// and noise.

inline constexpr std::int64_t kGeneratedTrainDigits = 7000;
inline constexpr std::int64_t kGeneratedTestDigits = 1500;
inline constexpr std::uint64_t kGeneratedDigitsSeed = 1;

/// The digit that picture `index` of `seed` shows. Each run of ten indices from a multiple of ten holds every
/// digit once.
int generated_label(std::uint64_t seed, std::uint64_t index);

/// Draws `digit` as picture `index` of `seed` into 28×28 pixels, 0 is paper. The same bytes on every machine.
void draw_digit(int digit, std::uint64_t seed, std::uint64_t index, std::span<std::uint8_t, 784> pixels);

/// `count` pictures from index `first` on. Throws InvalidArgumentError if count < 1.
Dataset generated_digits(std::uint64_t seed, std::uint64_t first, std::int64_t count);

/// The default sets, which share no picture. The seed of a training run does not change them, as it does not
/// change MNIST.
Dataset generated_digits(Split split);

// MNIST from its four IDX files: {train,t10k}-images-idx3-ubyte[.gz] and {train,t10k}-labels-idx1-ubyte[.gz].

/// Of the IDX format (http://yann.lecun.com/exdb/mnist: a magic number, big-endian dimensions, then the
/// elements): the u8 tensor with `dimensions` dimensions in `path`, gzip-compressed or plain (told by the
/// content, not by the name). Each error is one line that begins with the path: NotFoundError: no such file.
/// UnavailableError: it cannot be read. InvalidArgumentError: wrong magic, element type or number of
/// dimensions. DataLossError: truncated, damaged gzip data, fewer elements than announced, or trailing bytes.
/// The announced sizes are not believed: memory grows with what has been read.
Tensor read_idx(const std::filesystem::path& path, int dimensions);

/// The folder of the files: `asked`; if nothing was asked for $KOLO_DATA_DIR/mnist, else data/mnist under the
/// working directory. Throws NotFoundError: the folder asked for is none, KOLO_DATA_DIR is set and is none,
/// or neither place is there (naming both).
std::filesystem::path find_mnist(const std::optional<std::string>& asked);

/// True if any of MNIST's files is in `folder`.
bool is_mnist(const std::filesystem::path& folder);
/// True if either test file is in `folder`: the test split may be absent, but not halved.
bool has_mnist_test(const std::filesystem::path& folder);

/// Each error names its file: those of read_idx; NotFoundError for a file that is absent both plain and as
/// .gz; InvalidArgumentError if the images are not 28×28, if there are none, if the numbers of images and
/// labels differ (both files and counts named) or if a label is above 9 (index and value named).
Dataset load_mnist(const std::filesystem::path& folder, Split split);

// Digits: where a program gets them from, and what the models for them take.

/// The digits that `--data` names: "generated" draws them, all else is find_mnist's. Nothing if the test
/// split is asked for and its files are absent. Throws what those throw.
std::optional<Dataset> load_digits(const std::optional<std::string>& data, Split split);

}  // namespace kolo::models

namespace kolo::models::detail {

/// Throws InvalidArgumentError naming `model` unless x is f32 or f64 and [N,784] or [N,1,28,28].
void check_digits(const Output& x, std::string_view model);

}  // namespace kolo::models::detail

namespace kolo::models {

// CIFAR-10 from its binary version: data_batch_1.bin … data_batch_5.bin and test_batch.bin.

/// True if data_batch_1.bin or test_batch.bin is in `folder`.
bool is_cifar10(const std::filesystem::path& folder);
/// True if test_batch.bin is: the test split may be absent.
bool has_cifar10_test(const std::filesystem::path& folder);

/// Images u8 [N,3,32,32]; the format: https://www.cs.toronto.edu/~kriz/cifar.html, records of a label and
/// 3,072 pixels, red, green, blue. Of the training batches those from 1 to 5 that are there.
/// Classes are named as batches.meta.txt has them, and as CIFAR-10's where the file is not there.
/// Each error names its file: NotFoundError for one that is absent, also where a later training batch is
/// there, DataLossError where it is empty or ends within a record, InvalidArgumentError for a label above 9
/// (record and value named), what InputFile throws.
Dataset load_cifar10(const std::filesystem::path& folder, Split split);
/// The images of one such file, u8 [N,3,32,32]. Throws as above.
Tensor read_cifar10_images(const std::filesystem::path& path);

// Folders of photographs, a folder for each class: train/CLASS/x.jpg.

/// A split of a folder: its class folders stand in `train` and in `test`, or else in `val`, `valid` or
/// `validation` (of Split::validation in these, or else in `test`); where there is no `train` they stand in
/// the folder itself, and there is no test split: load_data draws one.
struct ImageFolder {
  std::string name;                  // of the folder, for outputs
  std::vector<std::string> classes;  // names of the training split's folders, sorted
  std::vector<std::filesystem::path>
      files;  // pictures by their names, sorted within their class, in folders below it too
  std::vector<std::int32_t> labels;  // of each file, a place in `classes`
  // Of each file, where a file may be of several classes or of none; `labels` is then empty.
  std::optional<std::vector<std::vector<std::int32_t>>> several = {};
  // Of each file, where they are to be found, as many as `classes`, which are then the numbers' names;
  // `labels` is empty.
  std::optional<std::vector<std::vector<float>>> numbers = {};
  std::shared_ptr<const TableSchema> label_table = nullptr;  // of numbers, as SampleKind has it
  std::string left_out;                    // what else lies there: "left out: 180 .heic, 18 broken links"
  std::vector<std::string> warnings = {};  // where the folders' own folders look like the classes
};

/// True if train/ or the folder itself has a folder with a picture (told by the names) in it.
bool is_image_folder(const std::filesystem::path& folder);
/// True if there is a folder for testing beside `train`.
bool has_image_folder_test(const std::filesystem::path& folder);

/// Pictures of the folder, sorted by their bytes, and behind them those of the folders in it, as
/// torchvision's ImageFolder finds them, without links that lead back up. Adds what else lies there to
/// `left_out`. Throws UnavailableError for
/// a folder that cannot be read.
std::vector<std::filesystem::path> images_below(const std::filesystem::path& folder, LeftOut& left_out);

/// What is there; no file is opened. Pictures may lie in folders below that of their class. Hidden folders
/// and files do not count; files of other names, links that lead nowhere, pictures beside the classes'
/// folders and folders that are of neither split are told in left_out. Throws NotFoundError for a split that
/// is absent, InvalidArgumentError for a training class without images and for a test class that training has
/// not. Neither are folders that lead back up, nor those of checkpoints and logs: `outputs`, and others that
/// hold such files; where pictures lie in them, they are classes like all others.
ImageFolder list_image_folder(const std::filesystem::path& folder, Split split,
                              const std::vector<std::string>& outputs = {});

/// Its images, decoded when they are asked for and brought to [C,H,W] (resize_and_crop, read_image, whose
/// errors end the reading), C 1 or 3; each worth several threads. Throws InvalidArgumentError for another C,
/// and for an augmentation out of range.
std::shared_ptr<const SampleSet> folder_samples(ImageFolder folder, const Shape& shape,
                                                const Augmentation& augmentation = {});

// Pictures in one folder, and a table that tells the class of each by its file's name.

/// True for a folder with pictures in it and exactly one table (.csv, .tsv), for one whose folder `train` is
/// such a folder, and for one with train.csv beside pictures in `train`.
bool is_named_images(const std::filesystem::path& folder);
/// True if there is such a folder `test`, `val`, `valid` or `validation` beside `train`.
bool has_named_images_test(const std::filesystem::path& folder);

/// How the table of pictures is read.
struct NamedImagesOptions {
  std::string target = {};                   // the labels' columns, as CsvOptions has them
  std::optional<LabelKind> label_kind = {};  // what labels are taken for; none: as they are found
  bool is_known = false;                     // so an earlier table was read, and nothing is to be found
  std::shared_ptr<const TableSchema> known = nullptr;  // ImageFolder::label_table of that table
};

/// A split of such a folder. One column of the table holds the names of pictures, with or without their
/// ending; another one the labels: `target` by its name or number, or several with commas between, else the
/// one called as read_csv has it, else the last one. They are classes, several labels of a picture or numbers
/// to find, as in read_csv. left_out tells both, the other columns, and how many pictures the table does not
/// name. Throws InvalidArgumentError, with the line's number, for a picture that is not there, named twice or
/// without a label; where no column names pictures; for what read_csv refuses of labels; and what InputFile
/// throws.
ImageFolder list_named_images(const std::filesystem::path& folder, Split split,
                              const NamedImagesOptions& options = {});

// Arrays from NumPy's files.

/// The array of a file that numpy.save has written (format 1.0 to 3.0, numpy.lib.format), row-major: f32 f64
/// i32 i64 u8 bool as they are, f16 as f32, i8 i16 u16 as i32, u32 as i64, of either order of bytes; what is
/// stored in Fortran's order is transposed. Each error is one line that begins with the path:
/// InvalidArgumentError for another type (named), DataLossError for what is no such file, a header that does
/// not parse, and a file that is shorter or longer than its header says, which is checked before memory is
/// taken; what InputFile throws.
Tensor read_npy(const std::filesystem::path& path);

// NumPy's arrays as samples: of the types and in the order of dimensions that models take.

/// The samples of an array, as models take them.
struct NpySamples {
  Tensor x;                  // f32 or u8: [N,C,H,W], [N,D]
  std::string note = {};     // what was taken for what: "x.npy [9,8,8,3] is taken as channels last"
  std::string warning = {};  // of channels that may stand last, and are taken for rows or columns
};

/// f16 and f64 become f32, bool 0 and 1; [N,H,W] are images of one channel; [N,H,W,C] is transposed where
/// [N,C,H,W] is impossible. Throws InvalidArgumentError for another type, for what is not finite as f32 (the
/// first one's place named) and for fewer than two dimensions, and what read_npy throws.
NpySamples read_npy_samples(const std::filesystem::path& path);

/// The same as batches of `sample`; an array of sample's own shape is one. Throws InvalidArgumentError that
/// names both shapes where they differ.
Tensor read_npy_samples(const std::filesystem::path& path, const Shape& sample);

}  // namespace kolo::models

namespace kolo::models::detail {

/// The numbers of what read_npy gives, as they are.
Tensor as_f32(const Tensor& x);

}  // namespace kolo::models::detail

namespace kolo::models {

// Texts as numbers, character by character, and pieces of them to learn from.

/// A value: the bytes of a text, numbered in their order, which model gpt takes as tokens.
class Text {
 public:
  /// Throws InvalidArgumentError for an empty text.
  explicit Text(std::string_view characters);
  /// With the alphabet of another one. Throws InvalidArgumentError for a byte that it has not.
  Text(std::string_view characters, std::string_view alphabet);
  /// alphabet: of another text; "": its own. Throws NotFoundError `no text: …` where the file cannot be read,
  /// and as the constructors, with its path.
  static Text read(const std::string& path, std::string_view alphabet = "");

  /// The bytes that there are, ascending: token i is alphabet()[i].
  const std::string& alphabet() const { return alphabet_; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  /// Throws InvalidArgumentError for a byte that the text has not.
  std::vector<std::int32_t> encode(std::string_view characters) const;

 private:
  std::string alphabet_;
  std::vector<std::int32_t> number_;  // of each byte; −1: not in the text
  std::vector<std::int32_t> tokens_;
};

/// Each byte as one that people can read: itself if it is printable ASCII, else "\\x0a"; so is the backslash.
std::vector<std::string> byte_names(std::string_view alphabet);
/// The way back. Throws InvalidArgumentError for what is no such name.
std::string bytes_named(const std::vector<std::string>& names);

/// The characters of a text in UTF-8, each once, ascending; "" of a text that is not UTF-8, and of an empty
/// one.
std::string characters_in(std::string_view text);
/// The same of the whole text that text_samples made samples of; nothing of other samples.
std::optional<std::string> characters_of(const SampleSet& samples);
/// characters: of a text, as above. Throws InvalidArgumentError for a prompt with another one, which it
/// names, and where the text is not UTF-8 for a prompt with characters of several bytes: they are others
/// there.
void check_prompt(std::string_view prompt, std::string_view characters);

/// What a step of gpt is fed with.
struct TextBatch {
  Tensor tokens;  // i32 [B,T]
  Tensor next;    // i32 [B·T]: the token behind each
};

/// Which pieces of a text a rank reads. Lengths are tokens.
struct TextPiecesOptions {
  std::int64_t batch_size = 16;  // pieces per rank and step, ≥ 1
  std::int64_t length = 128;     // tokens of a piece, ≥ 1
  int rank = 0;                  // 0 … ranks − 1
  int ranks = 1;
  std::uint64_t seed = 1;  // equal on all ranks
  double begin = 0;        // of the share of the text that is taken
  double end = 1;
};

/// Pieces that start anywhere. They depend on seed, step and place in the global batch alone: who goes on
/// from a step sees what he would have seen, also on another number of ranks with the same global batch. Any
/// thread.
class TextPieces {
 public:
  /// text: outlives this. Throws InvalidArgumentError for options out of range, and where the share of the
  /// text is not longer than a piece.
  TextPieces(const Text& text, const TextPiecesOptions& options);
  /// Those of a step ≥ 0, in new memory.
  TextBatch at(std::int64_t step) const;

 private:
  const Text& text_;
  TextPiecesOptions options_;
  std::int64_t first_ = 0;   // token of the share
  std::int64_t places_ = 0;  // where a piece may start
};

/// A share of a text as samples i32 [T] with the token behind each as its label: sample i begins at token i·T
/// of the share, in training up to T − 1 tokens later, drawn anew for each epoch. So an epoch is a pass over
/// the share. classes: the text's alphabet, with byte_names.
struct TextSamplesOptions {
  std::int64_t length = 128;  // T, ≥ 1
  double begin = 0;           // of the share of the text that is taken
  double end = 1;
  std::string note = {};                   // SampleKind::note
  std::vector<std::string> warnings = {};  // the same
};
/// Throws InvalidArgumentError for options out of range, and where the share is too short for one sample.
std::shared_ptr<const SampleSet> text_samples(std::string name, std::shared_ptr<const Text> text,
                                              const TextSamplesOptions& options);

// Samples without labels from the files that a user names: what a trained model predicts.

/// Samples to predict from, each with the name that it has in the output.
struct UnlabelledSamples {
  std::shared_ptr<const SampleSet> samples;  // labels are 0
  std::vector<std::string> names;            // "cat.jpg"; "x.npy[3]"; of a table the line: "table.csv:17"
  std::string left_out;                      // of folders and tables: "left out: 180 .heic"
  // Of tables: unknown words, empty cells, lines left out; of arrays: numbers that the model does not know.
  std::vector<std::string> notes = {};
};

/// In the order of `paths`; a folder's pictures are sorted by name, those in folders below behind them.
/// path: a picture (is_image_name), a folder of pictures, a table (.csv; a column more than `sample` has is
/// the label, found as read_csv finds it, and is not looked at), an array (.npy: [N, sample…], or one sample
/// alone; as load_data takes it), images of MNIST's format (…idx3-ubyte…) or of CIFAR-10's (.bin). table:
/// what the columns mean; without it they are numbers. largest, least: of the training's numbers, for a note
/// on arrays of another scale. sample: [C,H,W], to which pictures are brought, or [D]. Pictures are opened
/// when they are read. Throws NotFoundError for a path that is not there, InvalidArgumentError for a file of
/// another kind, a folder without pictures, samples of another shape and no paths at all, and what the
/// readers throw.
UnlabelledSamples unlabelled_samples(const std::vector<std::string>& paths, const Shape& sample,
                                     std::shared_ptr<const TableSchema> table = nullptr,
                                     std::optional<float> largest = {}, std::optional<float> least = {});

// Which samples are asked for, and those that are found.

/// What is asked for, and what the model can take.
struct DataRequest {
  std::optional<std::string> data;  // as --data: a folder, a file, "generated"; none: MNIST's places
  Shape sample;                     // of the model: [C,H,W], to which photographs are brought; [T] of a text
  DType input = DType::f32;         // i32: tokens
  CsvOptions table = {};  // of tables; its `known` is that of the training, where that is there already
  // Of the training, where it is there already: labels are numbered as these, or are numbers from 0 on.
  std::int64_t classes = 0;                   // 0: as they are found
  std::vector<std::string> class_names = {};  // empty: numbers
  std::optional<LabelKind> label_kind = {};   // what labels are taken for; none: as they are found
  std::shared_ptr<const TableSchema> label_table = nullptr;  // SampleKind::label_table
  bool with_train = false;  // all of these are of the training split of the same data
  std::uint64_t seed = 1;   // by which the samples of one table are shared out to training and testing
  // To be tested are data without a test part of their own: all of them, unless they hold the samples that
  // the training had.
  bool whole = false;
  bool is_own = false;                      // `data` names what the training learnt from
  std::vector<SampleDigests> trained = {};  // of the data of each start of the training, as far as known
  std::shared_ptr<const LearntSamples> learnt = nullptr;  // of these starts together; nobody knows: nullptr
  Augmentation augmentation = {};                         // of training images
  std::vector<std::string> outputs = {};  // folders that the program writes to: no part of the data
};

/// DataSplits::format of NumPy's arrays, whose numbers may be of any size. Other images are of 0 to 1.
inline constexpr char kArraysFormat[] = "NumPy arrays";

/// nullptr: not asked for, or not there.
struct DataSplits {
  std::shared_ptr<const SampleSet> train, test;
  std::string format = {};  // of what they were read: "table", "pictures in folders of their classes"
  // Names of the samples that were drawn for testing: "cat/7.jpg", "pets.csv:17", the line; empty: none were.
  std::vector<std::string> drawn = {};
  // Of the training's samples, or of all that were shared out, when they are asked for; empty: there are
  // none.
  std::function<SampleDigests()> digests = {};
};

// Labelled samples by the name of what holds them: where kolo-train gets them from.

/// A file: a text, of which the last tenth is for testing; with a name that ends in .csv or .tsv a
/// table, of whose rows a tenth, drawn by the seed, is for testing. A folder: CIFAR-10;
/// x_train.npy and y_train.npy, x_test.npy and y_test.npy (x [N,…] of numbers, y [N] of whole numbers;
/// x [N,H,W] are images of one channel); pictures with a table of their classes, shared out
/// as a table; photographs, a folder for each class; train.csv and test.csv; other tables,
/// which together are one, shared out as that of a file; MNIST's digits. Images [N,H,W,C] are
/// transposed where [N,C,H,W] is impossible. Nothing if the test split is asked for and is not there. Throws
/// what those throw; NotFoundError that says what lies in a folder of none of these kinds; and
/// InvalidArgumentError for pixels where the model takes tokens or the reverse, for options of tables where
/// there is none, for one class alone, and where the two splits do not fit together.
std::shared_ptr<const SampleSet> load_data(const DataRequest& request, Split split);
/// Both; a table is read once. Testing samples have the classes and columns of the training's.
DataSplits load_splits(const DataRequest& request);

/// "pets, 72 images of 3 channels, 32 x 32, 2 classes (cat: 30, dog: 42)": samples and what they are. More
/// than 12 classes are counted together.
std::string description(const SampleSet& samples);

}  // namespace kolo::models
