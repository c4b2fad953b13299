# libtorch, if it is installed: kolo_libtorch, which an example and its test link, and KOLO_HAS_LIBTORCH. Its own CMake
# package is left alone, since it sets flags for the whole project.
find_path(KOLO_LIBTORCH_API torch/torch.h PATH_SUFFIXES torch/csrc/api/include)
find_library(KOLO_LIBTORCH_TORCH torch)
find_library(KOLO_LIBTORCH_CPU torch_cpu)
find_library(KOLO_LIBTORCH_C10 c10)
mark_as_advanced(KOLO_LIBTORCH_API KOLO_LIBTORCH_TORCH KOLO_LIBTORCH_CPU KOLO_LIBTORCH_C10)

set(KOLO_HAS_LIBTORCH OFF)
if(KOLO_LIBTORCH_API AND KOLO_LIBTORCH_TORCH AND KOLO_LIBTORCH_CPU AND KOLO_LIBTORCH_C10 AND NOT KOLO_SANITIZE)
  set(KOLO_HAS_LIBTORCH ON)
  add_library(kolo_libtorch INTERFACE)
  get_filename_component(root ${KOLO_LIBTORCH_API}/../../../.. ABSOLUTE)
  target_include_directories(kolo_libtorch SYSTEM INTERFACE ${KOLO_LIBTORCH_API} ${root})
  target_link_libraries(kolo_libtorch INTERFACE ${KOLO_LIBTORCH_TORCH} ${KOLO_LIBTORCH_CPU} ${KOLO_LIBTORCH_C10})
endif()
