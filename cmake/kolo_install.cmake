# cmake --install: libkolo, its public headers as <kolo/…>, the programs, and the package find_package(kolo) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(KOLO_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/kolo)

install(TARGETS kolo EXPORT koloTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
get_property(programs GLOBAL PROPERTY KOLO_PROGRAMS)
if(programs)
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Headers of detail/ and of programs are nobody else's business; of collectives, those that are not listed as PUBLIC.
install(FILES kolo.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kolo OPTIONAL)
install(DIRECTORY core optimizer models DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kolo
        FILES_MATCHING PATTERN "*.h" PATTERN detail EXCLUDE PATTERN programs EXCLUDE PATTERN examples EXCLUDE)
get_property(headers GLOBAL PROPERTY KOLO_PUBLIC_HEADERS)
foreach(header IN LISTS headers)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${header})
  get_filename_component(folder ${path} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kolo/${folder})
endforeach()

install(EXPORT koloTargets NAMESPACE kolo:: DESTINATION ${KOLO_PACKAGE_DIR})
configure_package_config_file(cmake/koloConfig.cmake.in ${CMAKE_BINARY_DIR}/koloConfig.cmake
                              INSTALL_DESTINATION ${KOLO_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/koloConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/koloConfig.cmake ${CMAKE_BINARY_DIR}/koloConfigVersion.cmake
        DESTINATION ${KOLO_PACKAGE_DIR})
