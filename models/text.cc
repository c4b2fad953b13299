#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/utf8.h>
#include <kolo/models/samples.h>

namespace kolo::models {
namespace {

constexpr int kBytes = 256;

constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 34;  // of a file, which is read whole

}  // namespace

Text::Text(std::string_view characters) : Text(characters, characters) {}

Text::Text(std::string_view characters, std::string_view alphabet) : number_(kBytes, -1) {
  if (characters.empty()) throw InvalidArgumentError("a text has at least one character; this one is empty");
  std::array<bool, kBytes> seen{};
  for (const char character : alphabet) seen[static_cast<unsigned char>(character)] = true;
  for (int byte = 0; byte < kBytes; ++byte) {
    if (!seen[static_cast<std::size_t>(byte)]) continue;
    number_[static_cast<std::size_t>(byte)] = static_cast<std::int32_t>(alphabet_.size());
    alphabet_ += static_cast<char>(byte);
  }
  tokens_ = encode(characters);
}

Text Text::read(const std::string& path, std::string_view alphabet) {
  const std::string characters = InputFile(path).read_all(kMostTextBytes);
  if (characters.empty())
    throw InvalidArgumentError("{}: a text has at least one character; this file is empty", path);
  if (is_utf16(characters)) throw InvalidArgumentError("{}: it is UTF-16; save the text as UTF-8", path);
  if (const std::size_t zero = characters.find('\0'); zero != std::string::npos)
    throw InvalidArgumentError("{}: byte {} is 0, which no text has; a model learns from a text in UTF-8",
                               path, zero);
  try {
    return Text(characters, alphabet.empty() ? characters : alphabet);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError("{}: {}", path, error.what());
  }
}

std::vector<std::int32_t> Text::encode(std::string_view characters) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(characters.size());
  for (const char character : characters) {
    const std::int32_t number = number_[static_cast<unsigned char>(character)];
    if (number < 0)
      throw InvalidArgumentError(
          "{:?} is not among the characters of the training's text, whose {} bytes are {:?}; a model knows "
          "no other",
          utf8_character(characters, tokens.size()), alphabet_.size(), alphabet_);
    tokens.push_back(number);
  }
  return tokens;
}

std::vector<std::string> byte_names(std::string_view alphabet) {
  std::vector<std::string> names;
  names.reserve(alphabet.size());
  for (const char character : alphabet) {
    const bool is_plain = character >= ' ' && character <= '~' && character != '\\';
    names.push_back(is_plain ? std::string(1, character)
                             : fmt::format("\\x{:02x}", static_cast<unsigned char>(character)));
  }
  return names;
}

std::string bytes_named(const std::vector<std::string>& names) {
  std::string bytes;
  for (const std::string& name : names) {
    unsigned byte = 0;
    const char* const end = name.data() + name.size();
    if (name.size() == 1) bytes += name;
    else if (name.size() == 4 && name.starts_with("\\x") &&
             std::from_chars(name.data() + 2, end, byte, 16).ptr == end)
      bytes += static_cast<char>(byte);
    else
      throw InvalidArgumentError("{:?} names no byte; it must be one character, or \\x and two digits", name);
  }
  return bytes;
}

namespace {

// Calls `work` with each character; false at the first that is none of UTF-8.
template <typename Work>
bool for_each_character(std::string_view text, const Work& work) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    work(text.substr(at, length));
    at += length;
  }
  return true;
}

// Some of them, where there are many.
std::string told(std::string_view characters) {
  constexpr std::int64_t kMostTold = 200;
  std::string first;
  std::int64_t count = 0;
  for_each_character(characters, [&](std::string_view one) {
    if (count++ >= kMostTold) return;
    // An accent of its own would be seen on the letter in front of it.
    const bool is_accent = one.size() == 2 && (one[0] == '\xcc' || (one[0] == '\xcd' && one[1] <= '\xaf'));
    if (is_accent) first += "\u25cc";
    first += one;
  });
  return count <= kMostTold ? fmt::format("are {:?}", first)
                            : fmt::format("begin with {:?}, and {} more follow", first, count - kMostTold);
}

}  // namespace

std::string characters_in(std::string_view text) {
  // Texts are long, and most of their characters are of one byte.
  std::array<bool, kBytes> seen{};
  std::set<std::string_view> longer;
  const bool is_utf8 = for_each_character(text, [&](std::string_view one) {
    if (one.size() > 1) longer.insert(one);
    else seen[static_cast<unsigned char>(one.front())] = true;
  });
  if (!is_utf8) return "";
  std::string characters;
  for (int byte = 0; byte < kBytes; ++byte)
    if (seen[static_cast<std::size_t>(byte)]) characters += static_cast<char>(byte);
  for (const std::string_view one : longer) characters += one;
  return characters;
}

void check_prompt(std::string_view prompt, std::string_view characters) {
  bool is_ascii = true;
  std::set<std::string_view> known;
  for_each_character(characters, [&](std::string_view one) { known.insert(one); });
  const bool is_utf8 = for_each_character(prompt, [&](std::string_view one) {
    is_ascii &= one.size() == 1;
    if (!known.empty() && !known.contains(one))
      throw InvalidArgumentError(
          "{:?} is not among the characters of the training's text, which {}; a model knows no other", one,
          told(characters));
  });
  if (known.empty() && is_utf8 && !is_ascii)
    throw InvalidArgumentError(
        "the training's text is not UTF-8, and the prompt {:?} is: other letters than English ones are other "
        "bytes there; save the text as UTF-8 and train again",
        prompt);
  if (!known.empty() && !is_utf8)
    throw InvalidArgumentError("the prompt is not UTF-8, as the training's text is; give it as UTF-8");
}

namespace {

// Tokens of a text from `first` on.
struct Share {
  std::int64_t first, size;
};

Share share_of(const Text& text, double begin, double end) {
  if (!(begin >= 0 && begin < end && end <= 1))
    throw InvalidArgumentError("from {} to {} of a text; it must be 0 <= begin < end <= 1", begin, end);
  const auto size = static_cast<double>(text.tokens().size());
  const std::int64_t first = std::llround(begin * size);
  return {first, std::llround(end * size) - first};
}

class TextSamples final : public SampleSet {
 public:
  TextSamples(SampleKind kind, std::shared_ptr<const Text> text, Share share)
      : SampleSet(std::move(kind)), text_(std::move(text)), share_(share) {}

  // The last sample's label stands one token behind it.
  std::int64_t size() const override { return (share_.size - 1) / kind().labels; }
  const Text& text() const { return *text_; }
  void read(std::int64_t index, CounterRandom* random, const Batch& batch,
            std::int64_t place) const override {
    const std::int64_t length = kind().labels, at = index * length;
    // Behind the last samples there is less than another one's length.
    const std::int64_t most = std::min(length - 1, share_.size - 1 - length - at);
    const auto later = random == nullptr ? 0 : random->below(static_cast<std::uint64_t>(most + 1));
    const auto from = text_->tokens().begin() + share_.first + at + static_cast<std::ptrdiff_t>(later);
    std::copy(from, from + length, batch.samples.data<std::int32_t>() + place * length);
    std::copy(from + 1, from + 1 + length, batch.labels.data<std::int32_t>() + place * length);
  }

 private:
  std::shared_ptr<const Text> text_;
  Share share_;
};

}  // namespace

std::optional<std::string> characters_of(const SampleSet& samples) {
  const auto* const pieces = dynamic_cast<const TextSamples*>(&samples);
  if (pieces == nullptr) return std::nullopt;
  std::string text;
  text.reserve(pieces->text().tokens().size());
  for (const std::int32_t token : pieces->text().tokens())
    text += pieces->text().alphabet()[static_cast<std::size_t>(token)];
  return characters_in(text);
}

std::shared_ptr<const SampleSet> text_samples(std::string name, std::shared_ptr<const Text> text,
                                              const TextSamplesOptions& options) {
  const Share share = share_of(*text, options.begin, options.end);
  if (options.length < 1)
    throw InvalidArgumentError("{}: samples of {} bytes; each must have at least 1", name, options.length);
  if (share.size <= options.length)
    throw InvalidArgumentError(
        "{}: {} of the text's {} bytes are for this part, and a sample has {} and one behind; it needs a "
        "longer text, or shorter samples (--context)",
        name, share.size, text->tokens().size(), options.length);
  SampleKind kind{.name = std::move(name),
                  .shape = {options.length},
                  .classes = static_cast<std::int64_t>(text->alphabet().size()),
                  .dtype = DType::i32,
                  .labels = options.length,
                  .note = options.note,
                  .class_names = byte_names(text->alphabet()),
                  .warnings = options.warnings};
  return std::make_shared<TextSamples>(std::move(kind), std::move(text), share);
}

TextPieces::TextPieces(const Text& text, const TextPiecesOptions& options) : text_(text), options_(options) {
  if (options.batch_size < 1 || options.length < 1)
    throw InvalidArgumentError("batches of {} pieces of {} tokens; both must be at least 1",
                               options.batch_size, options.length);
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    throw InvalidArgumentError("rank {} of {} ranks; ranks are 0 to {}", options.rank, options.ranks,
                               options.ranks - 1);
  const Share share = share_of(text, options.begin, options.end);
  first_ = share.first;
  places_ = share.size - options.length;  // one token more follows a piece
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
