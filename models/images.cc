#include <kolo/models/images.h>

#include <kolo/models/cifar10.h>
#include <kolo/models/digits.h>

namespace kolo::models {

std::optional<Dataset> load_images(const std::optional<std::string>& data, Split split) {
  if (!data || !is_cifar10(*data)) return load_digits(data, split);
  if (split == Split::test && !has_cifar10_test(*data)) return std::nullopt;
  return load_cifar10(*data, split);
}

}  // namespace kolo::models
