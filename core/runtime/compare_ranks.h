// What all ranks do, fail to do, or have the same of.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/runtime/group.h>

namespace kolo::detail {

/// Does `work` on this rank; throws on every rank if it throws on any. Collective.
void share_failure(Group& group, const std::function<void()>& work);

/// What one rank has: a text for each name, in the order in which differences are looked for.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;
/// nullptr: there is no such name.
const std::string* find_text(const NamedTexts& texts, const std::string& name);

/// The first name of which not all ranks have the same text.
struct RankDifference {
  std::string name;
  std::vector<std::optional<std::string>> texts;  // by rank; nothing: it lacks the name
  int other = 0;                                  // the first rank whose text is not that of rank 0
  std::vector<NamedTexts> all;                    // by rank: who words the error may tell more of it
};

/// Whether all ranks have the same; the same answer on every rank. Names that rank 0 lacks stand behind the
/// one that is before them on the rank that has them. Collective: a hash of the texts is compared, and where
/// they differ each text travels once, from the first rank that has it; nothing with one rank.
std::optional<RankDifference> compare_ranks(Group& group, const NamedTexts& own);
/// The same for lists that are known.
std::optional<RankDifference> first_difference(std::vector<NamedTexts> all);

}  // namespace kolo::detail
