# One test binary a room, from every *_test.cpp beside its source: none can be switched off quietly.
enable_testing()
find_package(GTest)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "gtest not found (Debian: libgtest-dev libgmock-dev), or configure with -DLOCKSTEP_TESTS=OFF")
endif()

function(lockstep_test name folder kind)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lockstep/${folder}/*_test.cpp)
  if(NOT sources OR (kind STREQUAL "torch" AND NOT LOCKSTEP_HAS_torch))
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE lockstep_core GTest::gtest GTest::gmock GTest::gtest_main)
  if(kind STREQUAL "torch")
    target_link_libraries(test_${name} PRIVATE lockstep_torch)
  endif()
  set_target_properties(test_${name} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  add_test(NAME unit.${name} COMMAND test_${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 120)
  if(kind STREQUAL "torch")
    # Small tensors: on a busy machine more threads only wait for each other (test_model: 12 s, with one 0.5 s).
    set_tests_properties(unit.${name} PROPERTIES ENVIRONMENT OMP_NUM_THREADS=1)
  endif()
endfunction()

foreach(row ${room_rows})
  string(REGEX MATCH "^([a-z]+) +([a-z]+)" _ "${row}")
  lockstep_test(${CMAKE_MATCH_1} ${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()
foreach(row ${verb_rows})
  string(REGEX MATCH "^VERB\\(([a-z]+), ([a-z]+)" _ "${row}")
  lockstep_test(verb_${CMAKE_MATCH_1} verbs/${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

if(TARGET lockstep_cuda AND TARGET test_step)
  add_dependencies(test_step lockstep_cuda)  # opened at run time
endif()

if(TARGET lockstep_hdf5 AND TARGET test_data)
  add_dependencies(test_data lockstep_hdf5)  # likewise
endif()

# tests/oracles/x_probe.cpp becomes build/bin/x_probe: a small program that an oracle script drives. One whose name
# ends in _torch_probe.cpp may use the torch rooms.
file(GLOB probes CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/oracles/*_probe.cpp)
foreach(source ${probes})
  get_filename_component(probe ${source} NAME_WE)
  if(probe MATCHES "_torch_probe$" AND NOT LOCKSTEP_HAS_torch)
    continue()
  endif()
  add_executable(${probe} ${source})
  target_link_libraries(${probe} PRIVATE lockstep_core)
  if(probe MATCHES "_torch_probe$")
    target_link_libraries(${probe} PRIVATE lockstep_torch)
  endif()
endforeach()

# tests/mpi: one binary, run as 2 and as 3 ranks (label mpi).
file(GLOB mpi_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/mpi/*.cpp)
if(mpi_sources AND TARGET lockstep_mpi AND TARGET lockstep_torch)
  add_executable(test_mpi ${mpi_sources})
  target_link_libraries(test_mpi PRIVATE lockstep_torch GTest::gtest GTest::gmock)
  set_target_properties(test_mpi PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  add_dependencies(test_mpi lockstep_mpi)
  foreach(ranks 2 3)
    add_test(NAME mpi.ranks${ranks} COMMAND ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none
      -n ${ranks} $<TARGET_FILE:test_mpi> WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(mpi.ranks${ranks} PROPERTIES LABELS mpi TIMEOUT 120 PROCESSORS 2)
  endforeach()
endif()
