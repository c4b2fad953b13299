#include <kolo/collectives/engine/tally.h>

#include <algorithm>
#include <utility>

namespace kolo::detail {
namespace {

// More different opinions than an error tells of are not carried along.
constexpr std::size_t kMostVariants = 8;

}  // namespace

Tally Tally::of(int rank, RequestPtr request) {
  Tally tally;
  tally.name = request->name;
  tally.contributors = 1;
  if (has_own_rows(request->kind)) tally.rows.emplace_back(rank, request->rows());
  tally.variants.push_back({rank, std::move(request)});
  return tally;
}

void Tally::merge(Tally other) {
  contributors += other.contributors;
  if (joined_rank < 0) joined_rank = other.joined_rank;
  rows.insert(rows.end(), other.rows.begin(), other.rows.end());
  for (auto& variant : other.variants) {
    const auto same = std::find_if(variants.begin(), variants.end(), [&](const Variant& known) {
      return agree(*known.request, *variant.request);
    });
    if (same == variants.end()) {
      variants.push_back(std::move(variant));
      continue;
    }
    same->rank = std::min(same->rank, variant.rank);
    if (same->request->tensors.empty()) same->request = std::move(variant.request);  // a scatter's root
  }
  std::sort(variants.begin(), variants.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (variants.size() > kMostVariants) variants.resize(kMostVariants);
}

std::string Tally::disagreement(const std::vector<int>& members) const {
  for (std::size_t i = 1; i < variants.size(); ++i) {
    std::string text = detail::disagreement(*variants[0].request, members[variants[0].rank],
                                            *variants[i].request, members[variants[i].rank]);
    if (!text.empty()) return text;
  }
  return "";
}

void Tally::write(ByteWriter& to) const {
  to.text(name);
  to.number(static_cast<std::int64_t>(variants.size()));
  for (const auto& variant : variants) {
    to.number(variant.rank);
    detail::write(to, *variant.request);
  }
  to.number(contributors);
  to.number(joined_rank);
  to.number(static_cast<std::int64_t>(rows.size()));
  for (const auto& [rank, count] : rows) {
    to.number(rank);
    to.number(count);
  }
}

Tally Tally::read(ByteReader& from) {
  Tally tally;
  tally.name = from.text();
  tally.variants.resize(static_cast<std::size_t>(from.number()));
  for (auto& variant : tally.variants) {
    variant.rank = from.integer();
    variant.request = std::make_shared<const Request>(read_request(from));
  }
  tally.contributors = from.integer();
  tally.joined_rank = from.integer();
  tally.rows.resize(static_cast<std::size_t>(from.number()));
  for (auto& [rank, count] : tally.rows) {
    rank = from.integer();
    count = from.number();
  }
  return tally;
}

}  // namespace kolo::detail
