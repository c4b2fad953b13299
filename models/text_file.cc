#include <kolo/models/text_file.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/models/folder_contents.h>
#include <kolo/models/seen_samples.h>

namespace kolo::models::detail {
namespace {

using Found = std::shared_ptr<const SampleSet>;

constexpr double kTrainingText = 0.9;  // share of a text; the rest is for testing

// By its lines a text is known again, by pieces of very long ones, and of many short ones together. A short
// one other texts have as well.
struct Lines {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> places = {};  // begin and length
  bool are_cut = false;                                          // some of them

  std::string_view line(std::int64_t i) const {
    const auto [begin, length] = places[static_cast<std::size_t>(i)];
    return std::string_view(text).substr(begin, length);
  }
};

// Of a piece of a long line, of about a hundred bytes: what stands before it tells, so that another text
// which holds a part of the line has the same pieces.
std::size_t end_of_piece(std::string_view text, std::size_t from, std::size_t line_end) {
  constexpr std::size_t kBefore = 8, kOneOf = 64, kMost = 1024;
  for (std::size_t end = from; end < std::min(line_end, from + kMost); ++end) {
    const auto before = std::as_bytes(std::span(text.substr(end - kBefore, kBefore)));
    if ((digest_of_bytes(before) >> 32) % kOneOf == 0) return end;
  }
  return std::min(line_end, from + kMost);
}

std::shared_ptr<const Lines> lines_of(const Text& text) {
  constexpr std::size_t kShort = 24, kLong = 4096, kManyShort = 256;
  const auto lines = std::make_shared<Lines>();
  lines->text.reserve(text.tokens().size());
  for (const std::int32_t token : text.tokens())
    lines->text += text.alphabet()[static_cast<std::size_t>(token)];
  const std::string& all = lines->text;
  const auto end_of_line = [&](std::size_t begin) { return std::min(all.find('\n', begin), all.size()); };
  // Many short lines one behind the other are as a long one: a list of names.
  const auto end_of_short = [&](std::size_t begin) {
    std::size_t end = begin;
    for (std::size_t next = begin; next < all.size() && end_of_line(next) - next < kShort; next = end + 1)
      end = end_of_line(next);
    return end;
  };
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t short_end = end_of_short(begin);
    const bool are_short = short_end - begin >= kManyShort;
    const std::size_t line_end = are_short ? short_end : end_of_line(begin);
    const bool is_long = are_short || line_end - begin > kLong;
    lines->are_cut |= is_long;
    for (std::size_t end = begin; begin < line_end; begin = end) {
      end = is_long ? end_of_piece(all, begin + kShort, line_end) : line_end;
      if (end - begin >= kShort) lines->places.emplace_back(begin, end - begin);
    }
    begin = line_end + 1;
  }
  return lines;
}

std::size_t training_bytes(std::string_view text) {
  return static_cast<std::size_t>(std::llround(kTrainingText * static_cast<double>(text.size())));
}

// Those of the last tenth.
std::vector<std::int64_t> drawn_of(const Lines& lines) {
  const std::size_t training = training_bytes(lines.text);
  std::vector<std::int64_t> drawn;
  for (std::size_t i = 0; i < lines.places.size(); ++i)
    if (lines.places[i].first >= training) drawn.push_back(static_cast<std::int64_t>(i));
  return drawn;
}

// Where the pieces begin by which passages are found, wherever they stand: the eight bytes before them tell.
// About one of 32 places.
std::vector<std::size_t> begins_of_pieces(std::string_view text, std::size_t length) {
  constexpr std::size_t kBefore = 8;
  constexpr int kNoneOf = 5;  // bits
  std::vector<std::size_t> begins;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i + length <= text.size(); ++i) {
    if (i >= kBefore && (before * 0x9e3779b97f4a7c15) >> (64 - kNoneOf) == 0) begins.push_back(i);
    before = before << 8 | static_cast<unsigned char>(text[i]);
  }
  return begins;
}

// A passage of some 400 bytes has as many pieces as a run takes.
void add_pieces(SampleContents& contents, const std::shared_ptr<const Lines>& lines) {
  constexpr std::size_t kLength = 48;
  constexpr std::int64_t kLeastRun = 8;
  const std::string& text = lines->text;
  const auto begins = std::make_shared<const std::vector<std::size_t>>(begins_of_pieces(text, kLength));
  SampleContents pieces = contents_of_rows(std::ssize(*begins), [lines, begins](std::int64_t i) {
    const std::string_view piece =
        std::string_view(lines->text).substr((*begins)[static_cast<std::size_t>(i)], kLength);
    return digest_of_bytes(std::as_bytes(std::span(piece)));
  });
  pieces.least_run = kLeastRun;
  for (std::size_t i = 0; i < begins->size(); ++i)
    if ((*begins)[i] + kLength > training_bytes(text))
      contents.drawn_pieces.push_back(static_cast<std::int64_t>(i));
  contents.pieces = std::make_shared<const SampleContents>(std::move(pieces));
}

SampleContents contents_of(std::shared_ptr<const Lines> lines) {
  const std::int64_t count = std::ssize(lines->places);
  SampleContents contents = contents_of_rows(
      count, [lines](std::int64_t i) { return digest_of_bytes(std::as_bytes(std::span(lines->line(i)))); });
  add_pieces(contents, lines);
  contents.name = lines->are_cut ? "lines and pieces of lines" : "lines";
  return contents;
}

// Nothing where it is too short for a sample to test with.
Found part_of(const std::filesystem::path& file, const std::shared_ptr<const Text>& text,
              const DataRequest& request, TextSamplesOptions options) {
  options.length = request.sample.dim(0);
  const auto bytes = static_cast<double>(text->tokens().size()) * (options.end - options.begin);
  if (options.begin > 0 && bytes <= static_cast<double>(options.length + 1)) return nullptr;
  return text_samples(last_name(file), text, options);
}

}  // namespace

DataSplits text_samples_of_file(const std::filesystem::path& file, const DataRequest& request,
                                Wanted wanted) {
  // Another text than the training's may lack some of its characters, and has the same numbers for the rest.
  const std::string alphabet = bytes_named(request.class_names);
  const auto text = std::make_shared<const Text>(Text::read(file.string(), alphabet));
  DataSplits splits;
  TextSamplesOptions testing{.begin = kTrainingText, .end = 1};
  // Folders of earlier versions know no lines, and test the last tenth of any text.
  if (!request.trained.empty()) {
    const auto lines = lines_of(*text);
    if (!is_shared_out(request, wanted, drawn_of(*lines), contents_of(lines), testing.warnings)) {
      testing.begin = 0;
      testing.note = "all of it for testing";
    }
  }
  if (wanted.train) {
    splits.train = part_of(file, text, request, {.begin = 0, .end = kTrainingText});
    splits.digests = [text] {
      const auto lines = lines_of(*text);
      return digests_of(drawn_of(*lines), contents_of(lines));
    };
  }
  if (wanted.test) splits.test = part_of(file, text, request, testing);
  return splits;
}

}  // namespace kolo::models::detail
