// NVIDIA's libraries that the machine brings: cuBLASLt, cuDNN, NCCL. Opened when they are first asked for,
// never linked.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kolo {

/// What tells a library from others of its name.
struct LibraryKind {
  std::string name;    // "cuDNN"
  std::string soname;  // "libcudnn.so.9"
  /// "9.19.0", "" where the library does not say.
  std::function<std::string(void* library)> version;
  /// Of the CUDA that it was made for; 0 where its soname or nobody says.
  std::function<int(void* library)> cuda_major;
};
LibraryKind cublas_lt_kind(int cuda_major);
LibraryKind cudnn_kind();
LibraryKind nccl_kind();

/// Stays open until the process ends.
struct FoundLibrary {
  void* library = nullptr;  // nullptr: there is none that serves
  std::string path = {};
  std::string version = {};
  int cuda_major = 0;
  std::vector<std::string> tried = {};  // those passed over, "<path>: <why>"

  /// nullptr where there is no library, or it has no such function: what needs it is then off.
  void* function(const char* name) const;
};

/// The paths at which to look, in this order: the folders of KOLO_CUDA_LIBRARIES (`a:b`), the folder
/// `beside`, the name alone (the loader's folders), the toolkit's folders, and those in which pip puts
/// NVIDIA's packages for each python3 in PATH.
std::vector<std::string> library_candidates(const std::string& soname, const std::string& beside);
/// The first one that opens and is not of another major version of CUDA than `cuda_major`.
FoundLibrary find_library(const LibraryKind& kind, int cuda_major,
                          const std::vector<std::string>& candidates);
/// At those paths, with the plug-in's folder.
FoundLibrary find_library(const LibraryKind& kind, int cuda_major);

/// The functions that one of these libraries is opened for. One thread.
class LibraryFunctions {
 public:
  LibraryFunctions(LibraryKind kind, int cuda_major)
      : kind_(std::move(kind)), found_(find_library(kind_, cuda_major)) {}
  /// The library's function `name`; nullptr where it has none, which why_not() then says.
  template <typename Function>
  void take(const char* name, Function& function) {
    function = reinterpret_cast<Function>(found_.function(name));
    if (function == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
  }
  const FoundLibrary& found() const { return found_; }
  /// Why the library does not serve: those passed over, or what it lacks; "" where it does.
  std::string why_not() const;

 private:
  const LibraryKind kind_;
  const FoundLibrary found_;
  std::string missing_;
};

}  // namespace kolo
