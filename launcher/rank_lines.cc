#include <kolo/launcher/rank_lines.h>

#include <cctype>
#include <charconv>
#include <optional>

namespace kolo::launcher {
namespace {

struct Tag {
  bool complete = false;  // false: the text ended inside of what may become a tag
  int rank = 0;
  size_t length = 0;
};

// `[1,0]<stdout>:` at the start of `text`; nothing if no tag stands there, however the text goes on.
std::optional<Tag> match_tag(std::string_view text) {
  size_t at = 0;
  const auto literal = [&](char c) { return at < text.size() && text[at] == c ? ++at, true : false; };
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
    return text.substr(start, at - start);
  };
  const auto cut_or_none = [&] { return at == text.size() ? std::optional<Tag>(Tag{}) : std::nullopt; };

  if (!literal('[')) return cut_or_none();
  if (digits().empty() || !literal(',')) return cut_or_none();
  const std::string_view number = digits();
  if (number.empty() || number.size() > 9 || !literal(']')) return cut_or_none();
  for (const std::string_view stream : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    const std::string_view there = text.substr(at, stream.size());
    if (there != stream.substr(0, there.size())) continue;
    if (there.size() < stream.size()) return Tag{};
    Tag tag{true, 0, at + stream.size()};
    std::from_chars(number.data(), number.data() + number.size(), tag.rank);
    return tag;
  }
  return std::nullopt;
}

}  // namespace

void LineCutter::feed(std::string_view bytes, const std::function<void(std::string_view)>& take) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    started_.append(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    take(started_);
    started_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void LineCutter::finish(const std::function<void(std::string_view)>& take) {
  if (!started_.empty()) take(started_);
  started_.clear();
}

void TagSplitter::feed(std::string_view bytes, const Take& take) {
  held_.append(bytes);
  std::string_view rest = held_;
  size_t plain = 0;  // bytes of `rest` that belong to rank_
  const auto hand_on = [&] {
    if (plain > 0) take(rank_, rest.substr(0, plain));
    rest.remove_prefix(plain);
    plain = 0;
  };
  while (plain < rest.size()) {
    const size_t next = rest.find_first_of("[\n", plain);
    if (next == std::string_view::npos) {
      plain = rest.size();
    } else if (rest[next] == '\n') {
      plain = next + 1;
      hand_on();
      rank_ = kMpirunItself;  // each line of a rank starts with a tag
    } else {
      plain = next;
      const std::optional<Tag> tag = match_tag(rest.substr(next));
      if (tag && !tag->complete) break;
      if (tag) {
        hand_on();
        rest.remove_prefix(tag->length);
        rank_ = tag->rank;
      } else {
        ++plain;
      }
    }
  }
  hand_on();
  held_.erase(0, held_.size() - rest.size());
}

void TagSplitter::finish(const Take& take) {
  if (!held_.empty()) take(rank_, held_);
  held_.clear();
}

}  // namespace kolo::launcher
