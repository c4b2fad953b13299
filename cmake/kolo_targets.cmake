# The modules that users include by name, <kolo/ops.h>, where <kolo/kolo.h> is more than they want.
set(KOLO_MODULES ops collectives optimizer models keras)

# generated/kolo/<name>.h of the build, which brings the headers of a list.
function(kolo_bringing_header name headers)
  list(SORT headers)
  list(TRANSFORM headers REPLACE "(.+)" "#include <kolo/\\1>")
  list(JOIN headers "\n" includes)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/kolo/${name}.h @ONLY CONTENT
"// Made by CMake of the lists of public headers.
#pragma once

${includes}
")
endfunction()

# In a unity build (the preset `unity`) one compilation reads 24 sources of a target, unless a source has options of
# its own. Highway's foreach_target.h reads a source again for each instruction set, so such a source stays alone.
function(kolo_keep_out_of_unity)
  foreach(source IN LISTS ARGN)
    if(source MATCHES "\\.cc$" AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${source} alone LIMIT_COUNT 1 REGEX "^#define HWY_TARGET_INCLUDE")
      if(alone)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
endfunction()

# In a unity build a sixth of the rooms, parts and programs is compiled source by source, those that KOLO_SINGLE_TURN, 0 to 5,
# says: a missing include shows there.
function(kolo_take_a_turn)
  if("${KOLO_SINGLE_TURN}" STREQUAL "")
    return()
  endif()
  get_property(rooms GLOBAL PROPERTY KOLO_LIBRARIES)
  get_property(parts GLOBAL PROPERTY KOLO_PARTS)
  list(TRANSFORM parts PREPEND kolo_)
  get_property(programs GLOBAL PROPERTY KOLO_PROGRAMS)
  foreach(target IN LISTS rooms parts programs)
    string(MD5 hash ${target})  # a room's turn does not depend on which others there are
    string(SUBSTRING ${hash} 0 4 digits)
    math(EXPR turn "0x${digits} % 6")
    if(turn EQUAL KOLO_SINGLE_TURN)
      set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
    endif()
  endforeach()
endfunction()

# kolo_library(graph SOURCES graph.cc … PUBLIC graph.h … DEPENDS kolo_device PRIVATE fmt::fmt)
# PUBLIC: the headers that are installed, all of them brought by kolo.h. APART: installed, too, but who needs one names
# it, since it asks for more than a compiler. A header in neither list is internal.
# One object library per folder of the design, named kolo_<folder>. Object libraries, because a linker drops an
# unnamed object of a static library, and with it every op, kernel or optimizer that the object registers.
function(kolo_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;APART;DEPENDS;PRIVATE" ${ARGN})
  set(target kolo_${name})
  add_library(${target} OBJECT ${ARG_SOURCES})
  kolo_keep_out_of_unity(${ARG_SOURCES})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM ARG_PUBLIC PREPEND ${folder}/)
  list(TRANSFORM ARG_APART PREPEND ${folder}/)
  set_property(GLOBAL APPEND PROPERTY KOLO_PUBLIC_HEADERS ${ARG_PUBLIC})
  set_property(GLOBAL APPEND PROPERTY KOLO_APART_HEADERS ${ARG_APART})
  if(name IN_LIST KOLO_MODULES)
    kolo_bringing_header(${name} "${ARG_PUBLIC}")
  endif()
  target_include_directories(${target} PUBLIC ${CMAKE_BINARY_DIR}/include)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} fmt::fmt Threads::Threads
                                  PRIVATE kolo_build_flags ${ARG_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY KOLO_LIBRARIES ${target})
endfunction()

# kolo_proto(graph_proto SOURCES graph_def.proto)
# The C++ of .proto files, as another object library kolo_<name>: their headers are "core/graph/graph_def.pb.h" for
# those who link it. Warnings about them would be protobuf's, not ours. kolo_generated makes all such headers.
function(kolo_proto name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  set(target kolo_${name})
  set(generated ${CMAKE_BINARY_DIR}/generated)
  set(root ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..)
  foreach(source IN LISTS ARG_SOURCES)
    file(RELATIVE_PATH path ${root} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    string(REGEX REPLACE "\\.proto$" ".pb" stem ${generated}/${path})
    add_custom_command(
      OUTPUT ${stem}.cc ${stem}.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
      COMMAND protobuf::protoc --proto_path=${root} --cpp_out=${generated} ${path}
      DEPENDS ${source} VERBATIM)
    list(APPEND sources ${stem}.cc)
    list(APPEND headers ${stem}.h)
  endforeach()
  add_library(${target} OBJECT ${sources})
  target_compile_options(${target} PRIVATE -w)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_include_directories(${target} SYSTEM PUBLIC ${generated})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  set_property(GLOBAL APPEND PROPERTY KOLO_LIBRARIES ${target})
  add_custom_target(${target}_headers DEPENDS ${headers})
  if(NOT TARGET kolo_generated)
    add_custom_target(kolo_generated)
  endif()
  add_dependencies(kolo_generated ${target}_headers)
endfunction()

# All folders' objects as one shared library: kolo::kolo.
function(kolo_shared_library)
  get_property(headers GLOBAL PROPERTY KOLO_PUBLIC_HEADERS)
  kolo_bringing_header(kolo "${headers}")
  get_property(libraries GLOBAL PROPERTY KOLO_LIBRARIES)
  add_library(kolo SHARED)
  add_library(kolo::kolo ALIAS kolo)
  foreach(library IN LISTS libraries)
    target_sources(kolo PRIVATE $<TARGET_OBJECTS:${library}>)
    # Their own libraries (MPI, oneDNN, …) link here and are no business of kolo's users.
    target_link_libraries(kolo PRIVATE $<TARGET_PROPERTY:${library},LINK_LIBRARIES>)
  endforeach()
  target_include_directories(kolo PUBLIC $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include>
                                         $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated> $<INSTALL_INTERFACE:include>)
  target_link_libraries(kolo PUBLIC fmt::fmt Threads::Threads)
  target_compile_features(kolo PUBLIC cxx_std_20)  # the headers need it, and compilers start with less
  if(NOT KOLO_SANITIZE)  # a sanitizer's own symbols come with the program
    target_link_options(kolo PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(kolo PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  kolo_run_path(kolo $ORIGIN)
endfunction()

# kolo_part(cluster SOURCES … PUBLIC … PRIVATE …)
# A shared library beside libkolo, kolo::cluster, for what brings libraries that other programs shall not load. Who links
# it includes <kolo/cluster.h>; kolo.h does not bring its headers.
function(kolo_part name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target kolo_${name})
  add_library(${target} SHARED ${ARG_SOURCES})
  add_library(kolo::${name} ALIAS ${target})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM ARG_PUBLIC PREPEND ${folder}/)
  set_property(GLOBAL APPEND PROPERTY KOLO_APART_HEADERS ${ARG_PUBLIC})
  kolo_bringing_header(${name} "${ARG_PUBLIC}")
  target_link_libraries(${target} PUBLIC kolo PRIVATE ${ARG_PRIVATE})
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:kolo_build_flags,INTERFACE_COMPILE_OPTIONS>)
  # A program may call none of its functions: what the library registers is found by name.
  target_link_options(${target} PRIVATE $<TARGET_PROPERTY:kolo_build_flags,INTERFACE_LINK_OPTIONS>
                      INTERFACE LINKER:--no-as-needed)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR})
  kolo_run_path(${target} $ORIGIN)
  set_property(GLOBAL APPEND PROPERTY KOLO_PARTS ${name})
endfunction()

# Sanitizers name the code of a leak or race when the process ends: by then Open MPI has unloaded its plug-ins.
function(kolo_keep_plugins_loaded program)
  if(KOLO_SANITIZE)
    target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/no_dlclose.cc)
  endif()
endfunction()

# kolo_program(kolo-train SOURCES kolo_train.cc … DEPENDS kolo)
# A program that is installed; examples and tools of the tests are plain executables.
function(kolo_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_definitions(${name} PRIVATE KOLO_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PRIVATE kolo_build_flags ${ARG_DEPENDS})
  kolo_keep_plugins_loaded(${name})
  kolo_run_path(${name} $ORIGIN/../lib)
  set_property(GLOBAL APPEND PROPERTY KOLO_PROGRAMS ${name})
endfunction()

# A test is compiled more often than it runs, and what it measures is in libkolo. The second is for ccache.
set(KOLO_TEST_OPTIONS -O0 $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)

# What a test with INSTRUCTION_SETS runs under, besides the best that the processor has.
set(KOLO_HIGHWAY_SETS KOLO_TEST_SIMD=SCALAR KOLO_TEST_SIMD=SSSE3 KOLO_TEST_SIMD=SSE4 KOLO_TEST_SIMD=AVX2
                      KOLO_TEST_SIMD=AVX3)
set(KOLO_ONEDNN_SETS ONEDNN_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=AVX ONEDNN_MAX_CPU_ISA=AVX2
                     ONEDNN_MAX_CPU_ISA=AVX512_CORE)

function(kolo_test_on_servers name source server_filter cluster_filter timeout)
  set(program ${name}.on_servers)
  add_executable(${program} ${source} ${ARGN})
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR})
  # Its own headers are read before the names in it mean something else.
  file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${source} includes REGEX "^#include")
  list(JOIN includes "\n" includes)
  set(first ${CMAKE_BINARY_DIR}/generated/tests/${program}.h)
  file(CONFIGURE OUTPUT ${first} @ONLY CONTENT "${includes}\n#include \"tests/support/session_on_server.h\"\n")
  target_compile_options(${program} PRIVATE -O0 -include ${first})
  kolo_keep_plugins_loaded(${program})
  target_link_libraries(${program} PRIVATE kolo_build_flags kolo_cluster kolo kolo_test_paths GTest::gmock
                                           GTest::gtest_main)
  foreach(place server cluster)
    add_test(NAME ${name}.on_${place} COMMAND ${program})
    set_tests_properties(${name}.on_${place} PROPERTIES TIMEOUT ${timeout}
      ENVIRONMENT "TEST_SESSION_TARGET=${place};GTEST_FILTER=${${place}_filter};${KOLO_TEST_ENVIRONMENT}")
  endforeach()
endfunction()

# kolo_test(graph_test.cc [SOURCES more.cc …] [DEPENDS …] [RANKS 1 2 3 4] [TIMEOUT seconds] [CHECKS_OPS]
#           [INSTRUCTION_SETS HIGHWAY ONEDNN] [READS_GRAPH_DEFS] [ON_VIRTUAL_GPU filter] [ON_SERVERS filter [ON_CLUSTER filter]])
# One program per file, named after its path below tests/. With RANKS: once under mpirun for each number of ranks.
# With INSTRUCTION_SETS: once more for each of these that kernels of the library are compiled, or generated, for.
# With ON_VIRTUAL_GPU: those tests that GoogleTest's filter leaves once more with what nobody placed on a virtual GPU,
# whose memory the host cannot touch; of several numbers of ranks with 2.
# With ON_SERVERS: those that the filter leaves once more with their sessions on servers, see
# tests/support/session_on_server.h: <name>.on_server and <name>.on_cluster, for which ON_CLUSTER is another filter.
# With READS_GRAPH_DEFS: not run under TSan, where libprotobuf's map, which is not instrumented, crashes in itself.
# With CHECKS_OPS, which all of tests/core/ops have: core.ops.coverage_test counts the checks of ops that it makes.
function(kolo_test source)
  cmake_parse_arguments(ARG "CHECKS_OPS;READS_GRAPH_DEFS" "TIMEOUT;ON_VIRTUAL_GPU;ON_SERVERS;ON_CLUSTER" "DEPENDS;RANKS;SOURCES;INSTRUCTION_SETS" ${ARGN})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  string(REGEX REPLACE "\\.cc$" "" name ${name})
  string(REPLACE "/" "." name ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(disabled OFF)
  if(ARG_READS_GRAPH_DEFS AND KOLO_SANITIZE MATCHES thread)
    set(disabled ON)
  endif()
  math(EXPR ARG_TIMEOUT "${KOLO_TEST_SLOWDOWN} * ${ARG_TIMEOUT}")
  set(virtual_gpu "KOLO_VIRTUAL_GPUS=1x1GiB;GTEST_FILTER=${ARG_ON_VIRTUAL_GPU};${KOLO_TEST_ENVIRONMENT}")
  add_executable(${name} ${source} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${KOLO_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM kolo_test_headers)
  kolo_keep_plugins_loaded(${name})
  if(NOT ARG_RANKS)
    target_link_libraries(${name} PRIVATE kolo_build_flags kolo kolo_test_paths ${ARG_DEPENDS}
                                          GTest::gmock GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} DISABLED ${disabled}
                         ENVIRONMENT "${KOLO_TEST_ENVIRONMENT}")
    if(ARG_ON_VIRTUAL_GPU)
      add_test(NAME ${name}.virtual_gpu COMMAND ${name})
      set_tests_properties(${name}.virtual_gpu PROPERTIES TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${virtual_gpu}")
    endif()
    if(ARG_ON_SERVERS AND gRPC_FOUND)
      if(NOT ARG_ON_CLUSTER)
        set(ARG_ON_CLUSTER ${ARG_ON_SERVERS})
      endif()
      kolo_test_on_servers(${name} ${source} "${ARG_ON_SERVERS}" "${ARG_ON_CLUSTER}" ${ARG_TIMEOUT} ${ARG_SOURCES})
    endif()
    if(ARG_CHECKS_OPS OR CMAKE_CURRENT_SOURCE_DIR STREQUAL "${CMAKE_SOURCE_DIR}/tests/core/ops")
      set_tests_properties(${name} PROPERTIES FIXTURES_SETUP op_checks)
      if(ARG_ON_VIRTUAL_GPU)  # it writes the same file
        set_tests_properties(${name}.virtual_gpu PROPERTIES FIXTURES_SETUP op_checks)
      endif()
      set_property(GLOBAL APPEND PROPERTY KOLO_OP_TESTS ${name})
    endif()
    if("HIGHWAY" IN_LIST ARG_INSTRUCTION_SETS)
      target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/simd_target.cc)
      target_link_libraries(${name} PRIVATE hwy::hwy)
    endif()
    foreach(library IN LISTS ARG_INSTRUCTION_SETS)
      foreach(setting IN LISTS KOLO_${library}_SETS)
        string(REGEX REPLACE ".*=" "" set ${setting})
        string(TOLOWER ${name}.${library}_${set} again)
        add_test(NAME ${again} COMMAND ${name})
        set_tests_properties(${again} PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
                             ENVIRONMENT "${setting};${KOLO_TEST_ENVIRONMENT}")
        get_test_property(${name} FIXTURES_SETUP fixture)  # it writes the same file
        if(fixture)
          set_tests_properties(${again} PROPERTIES FIXTURES_SETUP ${fixture})
        endif()
      endforeach()
    endforeach()
    return()
  endif()
  target_link_libraries(${name} PRIVATE kolo_build_flags kolo kolo_test_paths ${ARG_DEPENDS}
                                        GTest::gmock kolo_mpi_test_main)
  math(EXPR job_seconds "${ARG_TIMEOUT} - 10")  # mpirun ends its ranks itself, before ctest kills mpirun
  foreach(ranks IN LISTS ARG_RANKS)
    add_test(NAME ${name}.${ranks} COMMAND ${CMAKE_SOURCE_DIR}/scripts/mpirun_test ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.${ranks} PROPERTIES TIMEOUT ${ARG_TIMEOUT} PROCESSORS 2 DISABLED ${disabled}
                         ENVIRONMENT "${KOLO_TEST_ENVIRONMENT};MPIRUN_TEST_SECONDS=${job_seconds}")
    if(MPI_CXX_LIB_NAMES MATCHES "mpich")  # of the preset mpich, whose mpiexec takes no option of Open MPI's
      set_tests_properties(${name}.${ranks} PROPERTIES LABELS mpich
                           ENVIRONMENT "${KOLO_TEST_ENVIRONMENT};MPIRUN_TEST_SECONDS=${job_seconds};MPIRUN_TEST_HYDRA=${MPIEXEC_EXECUTABLE}")
    endif()
  endforeach()
  if(ARG_ON_VIRTUAL_GPU)
    add_test(NAME ${name}.virtual_gpu COMMAND ${CMAKE_SOURCE_DIR}/scripts/mpirun_test 2 $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.virtual_gpu PROPERTIES TIMEOUT ${ARG_TIMEOUT} PROCESSORS 2
                         ENVIRONMENT "${virtual_gpu};MPIRUN_TEST_SECONDS=${job_seconds}")
  endif()
endfunction()
