# cmake --install: libkolo, its public headers as <kolo/…>, the programs, and the package find_package(kolo) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(KOLO_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/kolo)

get_property(parts GLOBAL PROPERTY KOLO_PARTS)
set(libraries ${parts})
list(TRANSFORM libraries PREPEND kolo_)
install(TARGETS kolo ${libraries} EXPORT koloTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(KOLO_HAS_CUDA)
  install(TARGETS kolo_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
get_property(programs GLOBAL PROPERTY KOLO_PROGRAMS)
if(programs)
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# What check_built.cmake looks for: a quick start builds some of it.
set(installed kolo ${libraries} ${programs} kolo_loopback_only)
if(KOLO_HAS_CUDA)
  list(APPEND installed kolo_cuda)
endif()
list(TRANSFORM installed REPLACE "(.+)" "$<TARGET_FILE:\\1>")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/check_built.cmake CONTENT "set(missing)
foreach(file IN ITEMS ${installed})
  if(NOT EXISTS \"\${file}\")
    get_filename_component(name \"\${file}\" NAME)
    string(APPEND missing \" \${name}\")
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR \"kolo is built in part; missing are:\${missing}. `cmake --build ${CMAKE_BINARY_DIR}` builds them. Nothing was installed.\")
endif()
")

# Man pages and bash completion, written from --help as the programs are installed.
find_program(KOLO_PYTHON_OF_SCRIPTS python3)
mark_as_advanced(KOLO_PYTHON_OF_SCRIPTS)
if(programs AND KOLO_PYTHON_OF_SCRIPTS AND NOT KOLO_SANITIZE)
  set(written ${CMAKE_BINARY_DIR}/from_help)
  list(REMOVE_ITEM programs kolo-network-probe)  # kolorun alone starts it
  list(JOIN programs " " program_words)
  install(CODE "execute_process(COMMAND \"${KOLO_PYTHON_OF_SCRIPTS}\" \"${PROJECT_SOURCE_DIR}/scripts/make_man_pages\"
                \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\" \"${written}\" ${program_words} COMMAND_ERROR_IS_FATAL ANY)")
  install(DIRECTORY ${written}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(DIRECTORY ${written}/completions DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion)
endif()

# The examples as source, with a project of their own.
set(examples ${CMAKE_INSTALL_DATADIR}/kolo/examples)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/examples/ DESTINATION ${examples}/cpp FILES_MATCHING PATTERN "*.cc"
        PATTERN libtorch_mnist EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/models/examples/outside.cmake DESTINATION ${examples}/cpp RENAME CMakeLists.txt)
if(KOLO_HAS_PYTHON)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/examples/ DESTINATION ${examples}/python
          FILES_MATCHING PATTERN "*.py" PATTERN "*.ipynb" PATTERN ".*" EXCLUDE PATTERN __pycache__ EXCLUDE)
endif()

# The lists PUBLIC and APART of the folders, and the generated headers that bring them.
get_property(public GLOBAL PROPERTY KOLO_PUBLIC_HEADERS)
get_property(apart GLOBAL PROPERTY KOLO_APART_HEADERS)
foreach(header IN LISTS public apart)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kolo/${folder})
endforeach()
foreach(name IN ITEMS kolo ${KOLO_MODULES} ${parts})
  install(FILES ${CMAKE_BINARY_DIR}/generated/kolo/${name}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kolo)
endforeach()

install(EXPORT koloTargets NAMESPACE kolo:: DESTINATION ${KOLO_PACKAGE_DIR})
configure_package_config_file(cmake/koloConfig.cmake.in ${CMAKE_BINARY_DIR}/koloConfig.cmake
                              INSTALL_DESTINATION ${KOLO_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/koloConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/koloConfig.cmake ${CMAKE_BINARY_DIR}/koloConfigVersion.cmake
        DESTINATION ${KOLO_PACKAGE_DIR})

# One archive for machines where nothing of kolo is installed.
add_custom_target(bundle COMMAND ${PROJECT_SOURCE_DIR}/scripts/make_bundle ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/kolo.tar.xz
                  DEPENDS kolo-bench kolo-inspect kolo-train kolorun $<TARGET_NAME_IF_EXISTS:kolo_cuda> $<TARGET_NAME_IF_EXISTS:gpu_numerics>
                          $<TARGET_NAME_IF_EXISTS:gpu_probe> USES_TERMINAL)
