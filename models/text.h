// Texts as numbers, character by character, and pieces of them to learn from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// Bytes of a text, numbered in their order: what model gpt takes as tokens.
class Text {
 public:
  /// Throws InvalidArgumentError for an empty text.
  explicit Text(std::string_view characters);
  /// Throws NotFoundError `no text: …` where the file cannot be read, and as the constructor.
  static Text read(const std::string& path);

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
/// from a step sees what he would have seen, also on another number of ranks with the same global batch.
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
};
/// Throws InvalidArgumentError for options out of range, and where the share is too short for one sample.
std::shared_ptr<const SampleSet> text_samples(std::string name, std::shared_ptr<const Text> text,
                                              const TextSamplesOptions& options);

}  // namespace kolo::models
