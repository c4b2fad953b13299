# What every target of the project is compiled with. Sanitizers come from the presets through KOLO_SANITIZE.
option(BUILD_TESTING "Build the tests" ON)
set(KOLO_SANITIZE "" CACHE STRING "Sanitizers of this build, as -fsanitize takes them: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# What is installed is linked with its final run path at once. CMake would else fill the path of the build with empty
# entries, to make room for the final one, and the loader takes an empty entry for the working directory.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
function(kolo_run_path target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ARGN}")
endfunction()

find_program(KOLO_CCACHE ccache)
if(KOLO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The tests' precompiled headers: ccache asks to be told that a macro of theirs may be defined later.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_PCH_EXTSUM=1 ${KOLO_CCACHE})
endif()

add_library(kolo_build_flags INTERFACE)
target_compile_options(kolo_build_flags INTERFACE -Wall -Wextra -Werror -fno-semantic-interposition -fopenmp-simd)
if(KOLO_SANITIZE)
  target_compile_options(kolo_build_flags INTERFACE -fsanitize=${KOLO_SANITIZE} -fno-sanitize-recover=all
                                                    -fno-omit-frame-pointer)
  target_link_options(kolo_build_flags INTERFACE -fsanitize=${KOLO_SANITIZE})
  if(KOLO_SANITIZE MATCHES thread)
    # With the compiler's own macro protobuf's maps have members that those in Debian's library, and in what protoc
    # generates, do not have.
    target_compile_options(kolo_build_flags INTERFACE -U__SANITIZE_THREAD__ -DKOLO_THREAD_SANITIZER)
  endif()
endif()

# What every test finds in its environment: one OpenMP thread, and the options of the build's sanitizer. How many times
# slower that makes a test, and so how much longer each of its deadlines is, tests written in Python find there too.
set(KOLO_TEST_SLOWDOWN 1)
if(KOLO_SANITIZE)
  set(KOLO_TEST_SLOWDOWN 4)
endif()
set(KOLO_TEST_ENVIRONMENT OMP_NUM_THREADS=1 TEST_SLOWDOWN=${KOLO_TEST_SLOWDOWN})
get_filename_component(kolo_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(suppressions ${kolo_root}/tests/suppressions)
# An allocation that is larger than any memory is refused, as it is without a sanitizer: tests ask for such.
if(KOLO_SANITIZE MATCHES address)
  list(APPEND KOLO_TEST_ENVIRONMENT
       ASAN_OPTIONS=fast_unwind_on_malloc=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
       LSAN_OPTIONS=suppressions=${suppressions}/lsan.txt:print_suppressions=0)
elseif(KOLO_SANITIZE MATCHES thread)
  # Open MPI is not instrumented: what one thread receives for another in it would look like a race of theirs.
  list(APPEND KOLO_TEST_ENVIRONMENT
       TSAN_OPTIONS=suppressions=${suppressions}/tsan.txt:second_deadlock_stack=1:ignore_noninstrumented_modules=1:allocator_may_return_null=1)
endif()

# <kolo/core/graph/graph.h> is core/graph/graph.h: one link makes the source tree look as it is installed.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${kolo_root} ${CMAKE_BINARY_DIR}/include/kolo SYMBOLIC)
