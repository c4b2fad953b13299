// Errors of kernels, with what the reader needs to find the node.
#pragma once

#include <exception>
#include <string>

namespace kolo {

/// `<cause> [node "<name>", <op> on <device>]`, with the cause's code.
std::exception_ptr described(std::exception_ptr cause, const std::string& name, const std::string& op,
                             const std::string& device);

}  // namespace kolo
