#include <kolo/core/runtime/compare_ranks.h>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>

namespace kolo::detail {
namespace {

// Of all ranks; a name that the ranks before lack behind the one that it follows.
std::vector<std::string> all_names(const std::vector<NamedTexts>& all) {
  std::vector<std::string> names;
  for (const NamedTexts& texts : all) {
    auto next = names.begin();
    for (const auto& [name, text] : texts) {
      const auto known = std::find(names.begin(), names.end(), name);
      next = known != names.end() ? known + 1 : names.insert(next, name) + 1;
    }
  }
  return names;
}

// Every rank's texts, by rank. Each text travels once, from the first rank that has it: those of a thousand
// ranks, of which one differs, are two.
std::vector<NamedTexts> exchange(Group& group, const std::string& text, const std::string& hash) {
  const std::vector<std::string> hashes = group.allgather(hash);
  std::map<std::string, NamedTexts> by_hash;
  for (int rank = 0; rank < group.size(); ++rank)
    if (by_hash.count(hashes[rank]) == 0)
      by_hash[hashes[rank]] = nlohmann::json::parse(group.broadcast(text, rank)).get<NamedTexts>();
  std::vector<NamedTexts> all;
  for (const std::string& of_rank : hashes) all.push_back(by_hash[of_rank]);
  return all;
}

}  // namespace

void share_failure(Group& group, const std::function<void()>& work) {
  if (group.size() == 1) return work();
  Code code = Code::unknown;
  std::string text;
  try {
    work();
  } catch (const std::exception& error) {
    code = code_of(error);
    text = *error.what() != '\0' ? error.what() : name(code);
  }
  throw_if_any_failed(group, code, text);
}

const std::string* find_text(const NamedTexts& texts, const std::string& name) {
  const auto found =
      std::find_if(texts.begin(), texts.end(), [&](const auto& entry) { return entry.first == name; });
  return found == texts.end() ? nullptr : &found->second;
}

std::optional<RankDifference> compare_ranks(Group& group, const NamedTexts& own) {
  if (group.size() == 1) return {};
  const std::string text = json_text(nlohmann::json(own));
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  const std::string own_hash = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  if (group.is_same_everywhere(own_hash)) return {};
  std::vector<NamedTexts> all = exchange(group, text, own_hash);
  for (NamedTexts& texts : all) {
    std::map<std::string, int> times;
    for (auto& [name, value] : texts)  // one that comes again gets a number: none hides another
      if (const int time = ++times[name]; time > 1) name += fmt::format(" ({})", time);
  }
  return first_difference(std::move(all));
}

std::optional<RankDifference> first_difference(std::vector<NamedTexts> all) {
  for (const std::string& name : all_names(all)) {
    const std::string* const first = find_text(all[0], name);
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      const std::string* const other = find_text(all[rank], name);
      if (first == other || (first != nullptr && other != nullptr && *first == *other)) continue;
      RankDifference found{.name = name, .texts = {}, .other = static_cast<int>(rank), .all = {}};
      for (const NamedTexts& texts : all) {
        const std::string* const text = find_text(texts, name);
        found.texts.push_back(text == nullptr ? std::nullopt : std::optional(*text));
      }
      found.all = std::move(all);
      return found;
    }
  }
  return {};
}

}  // namespace kolo::detail
