#include <kolo/core/base/error.h>
#include <kolo/core/base/utf8.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kLongestText = std::size_t{4} << 10;
constexpr std::string_view kCut = " … (cut)";

std::string bounded(std::string text) {
  if (text.size() <= kLongestText) return text;
  text.resize(utf8_prefix(text, kLongestText - kCut.size()).size());
  return text.append(kCut);
}

std::exception_ptr made(Code code, const std::string& text, bool consequence) {
  if (consequence) return std::make_exception_ptr(ConsequenceError(code, text));
  try {
    throw_error(code, text);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

std::string encode_error(const std::exception_ptr& error) {
  kolo::cluster::ErrorDetail detail;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    detail.set_code(static_cast<std::uint32_t>(code_of(caught)));
    detail.set_message(bounded(caught.what()));
  } catch (...) {
    detail.set_code(static_cast<std::uint32_t>(Code::unknown));
    detail.set_message("an exception that is no std::exception");
  }
  detail.set_consequence(is_consequence(error));
  return detail.SerializeAsString();
}

std::exception_ptr decode_error(std::string_view bytes) {
  kolo::cluster::ErrorDetail detail;
  if (bytes.empty() || bytes.size() > 4 * kLongestText ||
      !detail.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      detail.code() > static_cast<std::uint32_t>(Code::data_loss))
    return nullptr;
  return made(static_cast<Code>(detail.code()), detail.message(), detail.consequence());
}

}  // namespace kolo::detail
