// Names that people read as one, and that are different to a program.
#pragma once

#include <string>
#include <vector>

namespace kolo::models::detail {

/// Why two different names look alike: `their accents are written in two ways (Unicode's NFC and NFD)`, or
/// `they differ in the size of letters`; "" where they do not. Which accents these are is not looked at.
std::string why_alike(const std::string& a, const std::string& b);

/// `classes "café" and "café" look alike: …`, of the first such two; "" where there are none. what:
/// "classes".
std::string warning_of_alike(const std::string& what, const std::vector<std::string>& names);

/// `; "größe" looks like it: …` for the first of `others` that looks like `name`; "" for none.
std::string alike_text(const std::string& name, const std::vector<std::string>& others);

}  // namespace kolo::models::detail
