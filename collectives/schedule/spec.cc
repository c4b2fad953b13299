#include <kolo/collectives/schedule/spec.h>

#include <fmt/format.h>

#include <kolo/collectives/algorithms/device_collectives.h>
#include <kolo/core/device/device.h>

namespace kolo::detail {
namespace {

constexpr char kMissingSetting[] = "missing";

bool is_quoted(const std::string& text) { return text[0] == '"'; }

std::string without_type(const std::string& gradient) { return gradient.substr(0, gradient.rfind(' ')); }

// Which ranges of which buckets the ranks exchange follows from this and the gradients.
std::string describe_shards(const std::vector<ShardSpec>& shards) {
  if (shards.empty()) return "none";
  std::string text = "of";
  for (const ShardSpec& shard : shards)
    text += fmt::format(" {}{}", shard.part_only ? "parts" : "whole",
                        shard.gathered ? fmt::format(":{}", numpy_name(*shard.gathered)) : "");
  return text;
}

// Ranks of one kind join the same exchanges when they connect.
std::string kind_of_device(const ScheduleSpec& spec) {
  const bool on_gpu = spec.gpus && !spec.gpus->empty() && !spec.gpus->front()->runs_cpu_kernels();
  if (!on_gpu) return "CPU";
  return device_library() != nullptr ? "GPU" : "GPU, of a build without its collectives,";
}

}  // namespace

NamedTexts described(std::span<const GradientSpec> gradients, std::string_view what) {
  NamedTexts texts;
  for (const GradientSpec& gradient : gradients)
    texts.emplace_back(
        fmt::format("{} {}", what, texts.size()),
        fmt::format("\"{}\" {} {}", gradient.name, gradient.shape, numpy_name(gradient.dtype)));
  return texts;
}

NamedTexts described(const ScheduleSpec& spec) {
  NamedTexts texts = described(spec.gradients);
  for (const RowGatherSpec& gather : spec.gathers)
    texts.emplace_back(fmt::format("gradient {}", texts.size()),
                       fmt::format("\"{}\" rows of {} by {} {}", gather.name, gather.dense_shape,
                                   numpy_name(gather.index_dtype), numpy_name(gather.dtype)));
  texts.emplace_back("the reduction", name(spec.reduction.op));
  if (spec.reduction.is_scaled())
    texts.emplace_back("the scales",
                       fmt::format("{} and {}", spec.reduction.prescale, spec.reduction.postscale));
  texts.insert(texts.end(), spec.options.begin(), spec.options.end());
  texts.emplace_back("the bucket limit", std::to_string(spec.limits.bytes));
  texts.emplace_back("the first bucket's limit", std::to_string(spec.limits.first_bytes));
  texts.emplace_back("the sharding", describe_shards(spec.shards));
  texts.emplace_back("the kind of device", kind_of_device(spec));
  return texts;
}

std::string words_of(const RankDifference& difference, std::span<const int> ranks) {
  const auto number = [&](int rank) { return ranks.empty() ? rank : ranks[static_cast<std::size_t>(rank)]; };
  const auto& first = difference.texts[0];
  const auto& other = difference.texts[static_cast<std::size_t>(difference.other)];
  const bool only_type = first && other && is_quoted(*first) && is_quoted(*other) &&
                         without_type(*first) == without_type(*other);
  const auto shown = [&](const std::optional<std::string>& text) {
    if (!text) return std::string(kMissingSetting);
    return is_quoted(*text) && !only_type ? without_type(*text) : *text;
  };
  return fmt::format("{} is {} on rank {} but {} on rank {}", difference.name, shown(first), number(0),
                     shown(other), number(difference.other));
}

}  // namespace kolo::detail
