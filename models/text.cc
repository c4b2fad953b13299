#include <kolo/models/text.h>

#include <array>
#include <cmath>
#include <fstream>
#include <iterator>

#include <kolo/core/base/error.h>
#include <kolo/models/counter_random.h>

namespace kolo::models {
namespace {

constexpr int kBytes = 256;

}  // namespace

Text::Text(std::string_view characters) : number_(kBytes, -1) {
  if (characters.empty()) throw InvalidArgumentError("a text has at least one character; this one is empty");
  std::array<bool, kBytes> seen{};
  for (const char character : characters) seen[static_cast<unsigned char>(character)] = true;
  for (int byte = 0; byte < kBytes; ++byte) {
    if (!seen[static_cast<std::size_t>(byte)]) continue;
    number_[static_cast<std::size_t>(byte)] = static_cast<std::int32_t>(alphabet_.size());
    alphabet_ += static_cast<char>(byte);
  }
  tokens_ = encode(characters);
}

Text Text::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string characters{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw NotFoundError("no text: {} cannot be read", path);
  return Text(characters);
}

std::vector<std::int32_t> Text::encode(std::string_view characters) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(characters.size());
  for (const char character : characters) {
    const std::int32_t number = number_[static_cast<unsigned char>(character)];
    if (number < 0)
      throw InvalidArgumentError("the text has no byte {}; its {} are {:?}",
                                 static_cast<unsigned char>(character), alphabet_.size(), alphabet_);
    tokens.push_back(number);
  }
  return tokens;
}

TextPieces::TextPieces(const Text& text, const TextPiecesOptions& options) : text_(text), options_(options) {
  if (options.batch_size < 1 || options.length < 1)
    throw InvalidArgumentError("batches of {} pieces of {} tokens; both must be at least 1",
                               options.batch_size, options.length);
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    throw InvalidArgumentError("rank {} of {} ranks; ranks are 0 to {}", options.rank, options.ranks,
                               options.ranks - 1);
  if (!(options.begin >= 0 && options.begin < options.end && options.end <= 1))
    throw InvalidArgumentError("from {} to {} of a text; it must be 0 <= begin < end <= 1", options.begin,
                               options.end);
  const auto size = static_cast<double>(text.tokens().size());
  first_ = std::llround(options.begin * size);
  places_ = std::llround(options.end * size) - first_ - options.length;  // one token more follows a piece
  if (places_ < 1)
    throw InvalidArgumentError("{} tokens of a text are too few for pieces of {} and the token behind",
                               places_ + options.length, options.length);
}

TextBatch TextPieces::at(std::int64_t step) const {
  const std::int64_t batch = options_.batch_size, length = options_.length;
  TextBatch made{.tokens = Tensor(DType::i32, {batch, length}), .next = Tensor(DType::i32, {batch * length})};
  CounterRandom random(options_.seed, RandomPurpose::text_pieces, static_cast<std::uint64_t>(step));
  for (std::int64_t i = 0; i < batch * options_.rank; ++i) random.below(static_cast<std::uint64_t>(places_));
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto from = text_.tokens().begin() + first_ +
                      static_cast<std::ptrdiff_t>(random.below(static_cast<std::uint64_t>(places_)));
    std::copy(from, from + length, made.tokens.data<std::int32_t>() + i * length);
    std::copy(from + 1, from + 1 + length, made.next.data<std::int32_t>() + i * length);
  }
  return made;
}

}  // namespace kolo::models
