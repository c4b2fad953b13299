#include <kolo/models/alike_names.h>

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include <kolo/core/base/text.h>
#include <kolo/core/base/utf8.h>

namespace kolo::models::detail {
namespace {

// Of a name with letters that have accents: whether these are letters of their own (NFC), or marks behind
// plain ones (NFD). The skeleton has one sign for either.
struct Skeleton {
  std::string text;
  bool has_marks = false;
};

// U+0300 to U+036F.
bool is_combining_mark(std::string_view one) {
  return one.size() == 2 &&
         (one[0] == '\xcc' || (one[0] == '\xcd' && static_cast<unsigned char>(one[1]) <= 0xaf));
}

// U+00C0 to U+024F.
bool may_have_accent(std::string_view one) {
  const auto first = static_cast<unsigned char>(one[0]);
  return one.size() == 2 && first >= 0xc3 && first <= 0xc9;
}

Skeleton skeleton_of(std::string_view name) {
  constexpr char kAccented = '\x01';
  Skeleton found;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t length = utf8_length(name, at);
    const std::string_view one = name.substr(at, length == 0 ? 1 : length);
    at += one.size();
    if (is_combining_mark(one)) {
      found.has_marks = true;
      if (!found.text.empty()) found.text.back() = kAccented;
    } else if (may_have_accent(one)) {
      found.text += kAccented;
    } else {
      found.text += one;
    }
  }
  return found;
}

std::string small(std::string name) {
  for (char& letter : name) letter = lower_case(letter);
  return name;
}

}  // namespace

std::string why_alike(const std::string& a, const std::string& b) {
  if (a == b) return "";
  if (small(a) == small(b)) return "they differ in the size of letters";
  const Skeleton one = skeleton_of(a), other = skeleton_of(b);
  if (one.text != other.text || one.has_marks == other.has_marks) return "";
  return "their accents are written in two ways (Unicode's NFC and NFD)";
}

std::string warning_of_alike(const std::string& what, const std::vector<std::string>& names) {
  for (const bool of_accents : {true, false}) {
    std::unordered_map<std::string, const std::string*> first;
    for (const std::string& name : names) {
      const auto [known, is_new] = first.emplace(of_accents ? skeleton_of(name).text : small(name), &name);
      if (is_new) continue;
      // Short ones are codes, where the size of letters means something.
      constexpr std::size_t kShort = 3;
      const std::string why = why_alike(*known->second, name);
      if (!why.empty() && (of_accents || name.size() >= kShort))
        return fmt::format("{} {:?} and {:?} look alike and are two: {}", what, *known->second, name, why);
    }
  }
  return "";
}

std::string alike_text(const std::string& name, const std::vector<std::string>& others) {
  for (const std::string& other : others)
    if (const std::string why = why_alike(name, other); !why.empty())
      return fmt::format("; {:?} looks like it, and {}", other, why);
  return "";
}

}  // namespace kolo::models::detail
