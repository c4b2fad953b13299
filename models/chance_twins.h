// Rows that are alike: by chance, as where columns have few different values, or because they were copied.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/models/sample_contents.h>

namespace kolo::models::detail {

/// Of all of them, sorted.
std::vector<std::uint64_t> sorted_digests(const SampleContents& contents);

/// How likely a further sample of the same kind is alike one of `among` of these: rows of few different
/// values coincide by chance. By how many of these are alike others of them, as far as these are no copies,
/// and by how many more there may be where few were found. 0 of pictures in files, which never coincide.
double chance_of_twin(const SampleContents& contents, std::int64_t among);

/// How likely one of `asked` is alike one of `among` others of this kind, by how many of `asked` are alike
/// others of them: a subgroup, as the men of one class, has more twins than a table of all.
double chance_of_asked(const SampleContents& asked, std::int64_t among);

/// Whether so many of `asked` samples coincide that chance does not explain it. chance: of one.
bool is_beyond_chance(double found, double asked, double chance);

/// Of these samples one of each that are alike and are copies, as where every row stands twice, and all that
/// are not alike others; sorted. Empty where most are alike by chance, so that other tables have the same
/// rows as well.
std::vector<std::int64_t> telling_ones(const std::vector<std::int64_t>& places,
                                       const SampleContents& contents);

}  // namespace kolo::models::detail
