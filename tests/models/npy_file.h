// NumPy's files as bytes.
#pragma once

#include <string>

namespace kolo::models {

/// An array as numpy.save writes it.
inline std::string npy(const std::string& type, const std::string& shape, const std::string& elements) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + elements;
}

}  // namespace kolo::models
