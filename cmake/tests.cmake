# One test binary a room, from every *_test.cpp beside its source: none can be switched off quietly. A plain build makes
# none of them; the targets are test_<room>, unit_tests, mpi_tests, probes, and tests for all.
enable_testing()
find_package(GTest)
if(NOT GTest_FOUND)
  message(WARNING "gtest not found: the tests are left out (Debian: libgtest-dev libgmock-dev)")
  return()
endif()
add_custom_target(unit_tests)
add_custom_target(mpi_tests)
add_custom_target(probes)
add_custom_target(tests DEPENDS unit_tests mpi_tests probes)

lockstep_headers(test_core executable "GTest::gtest;GTest::gmock" "${test_headers}")
if(LOCKSTEP_HAS_torch)
  lockstep_headers(test_torch executable "GTest::gtest;GTest::gmock;lockstep_libtorch" "${test_headers};${torch_headers}")
endif()

function(lockstep_test name folder kind)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lockstep/${folder}/*_test.cpp)
  if(NOT sources OR (kind STREQUAL "torch" AND NOT LOCKSTEP_HAS_torch))
    return()
  endif()
  add_executable(test_${name} EXCLUDE_FROM_ALL ${sources})
  add_dependencies(unit_tests test_${name})
  target_link_libraries(test_${name} PRIVATE lockstep_core GTest::gtest GTest::gmock GTest::gtest_main)
  if(kind STREQUAL "torch" AND TARGET room_${name})
    # The rooms that it may include and no more: a change of model is tested without compiling training and measure.
    list(FIND torch_rooms room_${name} height)
    math(EXPR height "${height} + 1")
    list(SUBLIST torch_rooms 0 ${height} rooms)
    target_link_libraries(test_${name} PRIVATE ${rooms} lockstep_libtorch ${CMAKE_DL_LIBS})
  elseif(kind STREQUAL "torch")
    target_link_libraries(test_${name} PRIVATE lockstep_torch)
  endif()
  set_target_properties(test_${name} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  # What is tested is optimized as users have it; the tests themselves run once for each time that they are compiled.
  target_compile_options(test_${name} PRIVATE -O0)
  lockstep_reads_first(test_${name} test_${kind})
  add_test(NAME unit.${name} COMMAND test_${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 600)  # for a hang, not for a slow machine
  if(kind STREQUAL "torch")
    # Small tensors: on a busy machine more threads only wait for each other (test_model: 12 s, with one 0.5 s).
    set_tests_properties(unit.${name} PROPERTIES ENVIRONMENT OMP_NUM_THREADS=1)
  endif()
endfunction()

foreach(row ${room_rows})
  string(REGEX MATCH "^([a-z/]+) +([a-z]+)" _ "${row}")
  string(REPLACE "/" "_" name ${CMAKE_MATCH_1})
  lockstep_test(${name} ${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()
foreach(row ${verb_rows})
  string(REGEX MATCH "^VERB\\(([a-z]+), ([a-z]+)" _ "${row}")
  lockstep_test(verb_${CMAKE_MATCH_1} verbs/${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

if(TARGET lockstep_cuda AND TARGET test_step)
  add_dependencies(test_step lockstep_cuda)  # opened at run time
endif()

if(TARGET lockstep_listen)
  add_dependencies(test_site lockstep_listen)  # looked for beside the libraries
endif()

if(TARGET lockstep_hdf5 AND TARGET test_sources)
  add_dependencies(test_sources lockstep_hdf5)  # likewise
endif()

# tests/oracles/x_probe.cpp becomes build/bin/x_probe: a small program that an oracle script drives. One whose name
# ends in _torch_probe.cpp may use the torch rooms.
file(GLOB probes CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/oracles/*_probe.cpp)
foreach(source ${probes})
  get_filename_component(probe ${source} NAME_WE)
  if(probe MATCHES "_torch_probe$" AND NOT LOCKSTEP_HAS_torch)
    continue()
  endif()
  add_executable(${probe} EXCLUDE_FROM_ALL ${source})
  add_dependencies(probes ${probe})
  target_link_libraries(${probe} PRIVATE lockstep_core)
  target_compile_options(${probe} PRIVATE -O0)
  if(probe MATCHES "_torch_probe$")
    target_link_libraries(${probe} PRIVATE lockstep_torch)
    lockstep_reads_first(${probe} test_torch)
    target_compile_definitions(${probe} PRIVATE GTEST_HAS_PTHREAD=1)  # as in what it reads first
  endif()
endforeach()

# tests/mpi: one binary, run as 2 and as 3 ranks of Open MPI (label mpi) and, where it is installed, of MPICH.
file(GLOB mpi_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/mpi/*.cpp)
if(mpi_sources AND TARGET lockstep_mpi AND TARGET lockstep_torch)
  add_executable(test_mpi EXCLUDE_FROM_ALL ${mpi_sources})
  add_dependencies(mpi_tests test_mpi)
  target_link_libraries(test_mpi PRIVATE lockstep_torch GTest::gtest GTest::gmock)
  set_target_properties(test_mpi PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  target_compile_options(test_mpi PRIVATE -O0)
  lockstep_reads_first(test_mpi test_torch)
  add_dependencies(test_mpi lockstep_mpi)
  set(mpirun ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none)
  function(lockstep_mpi_test name)
    add_test(NAME mpi.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(mpi.${name} PROPERTIES LABELS mpi TIMEOUT 600 PROCESSORS 2)
  endfunction()
  foreach(ranks 2 3)
    lockstep_mpi_test(ranks${ranks} ${mpirun} -n ${ranks} $<TARGET_FILE:test_mpi>)
  endforeach()
  # As in a container, where no process may read another's memory.
  lockstep_mpi_test(no_single_copy ${mpirun} -n 2 $<TARGET_FILE:test_mpi> --gtest_filter=MpiGroupTest.*)
  set_tests_properties(mpi.no_single_copy PROPERTIES ENVIRONMENT OMPI_MCA_btl_vader_single_copy_mechanism=none)
  # Whoever waits for a lost rank is ended, and the launcher gives its exit code.
  set(expect_7 sh -c "\"$@\" && exit 1 || test $? -eq 7" lost)
  lockstep_mpi_test(lost_rank ${expect_7} ${mpirun} -n 2 $<TARGET_FILE:test_mpi> --lose-a-rank)

  # A second set of libraries whose plug-in is MPICH's, built by the line that a site types.
  find_program(mpich_cxx mpicxx.mpich)
  find_program(mpich_run mpiexec.mpich)
  if(mpich_cxx AND mpich_run)
    set(mpich ${CMAKE_BINARY_DIR}/mpich)
    add_custom_command(OUTPUT ${mpich}/liblockstep_mpi.so
      COMMAND ${CMAKE_COMMAND} -E make_directory ${mpich}
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:lockstep_core> ${mpich}/liblockstep_core.so
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:lockstep_torch> ${mpich}/liblockstep_torch.so
      COMMAND ${mpich_cxx} -O2 -shared -fPIC ${CMAKE_SOURCE_DIR}/plugins/mpi/mpi_plugin.cpp -o ${mpich}/liblockstep_mpi.so
      DEPENDS plugins/mpi/mpi_plugin.cpp plugins/mpi/mpi_plugin.h VERBATIM)
    add_custom_target(lockstep_mpich DEPENDS ${mpich}/liblockstep_mpi.so)
    add_dependencies(mpi_tests lockstep_mpich)
    foreach(ranks 2 3)
      lockstep_mpi_test(mpich_ranks${ranks} ${mpich_run} -n ${ranks} $<TARGET_FILE:test_mpi>)
    endforeach()
    # Its launcher gives the code of the process that it sees end first: the lost one, or one that it killed for that.
    set(expect_7_or_9 sh -c "\"$@\" && exit 1 || expr $? : [79]$ > /dev/null" lost)
    lockstep_mpi_test(mpich_lost_rank ${expect_7_or_9} ${mpich_run} -n 2 $<TARGET_FILE:test_mpi> --lose-a-rank)
    set_tests_properties(mpi.mpich_lost_rank PROPERTIES FAIL_REGULAR_EXPRESSION "the sum of a lost rank arrived")
    # Launcher and library of different kinds: named, not N worlds of one.
    lockstep_mpi_test(mpich_under_mpirun ${mpirun} -n 2 $<TARGET_FILE:test_mpi>)
    set_tests_properties(mpi.mpich_under_mpirun PROPERTIES PASS_REGULAR_EXPRESSION
      "mpirun started 2 ranks, but the plug-in's MPI .MPICH[^)]*. sees a world of 1")
    lockstep_mpi_test(open_mpi_under_mpich ${mpich_run} -n 2 $<TARGET_FILE:test_mpi>)
    set_tests_properties(mpi.open_mpi_under_mpich PROPERTIES PASS_REGULAR_EXPRESSION
      "mpiexec started 2 ranks, but the plug-in's MPI .Open MPI[^)]*. sees a world of 1")
    set_tests_properties(mpi.mpich_ranks2 mpi.mpich_ranks3 mpi.mpich_lost_rank mpi.mpich_under_mpirun PROPERTIES
      ENVIRONMENT LD_LIBRARY_PATH=${mpich})
  else()
    message(STATUS "MPICH is not installed: the contract runs on Open MPI alone (Debian: mpich libmpich-dev)")
  endif()
endif()

# tests/slurm: a real Slurm in a view of this machine (label slurm; needs root; scripts/test_long.sh runs them).
foreach(name login_node chain)
  add_test(NAME slurm.${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/slurm/${name}.sh WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(slurm.${name} PROPERTIES LABELS slurm TIMEOUT 600 SKIP_RETURN_CODE 77 RUN_SERIAL ON
    ENVIRONMENT LOCKSTEP_BUILD=${CMAKE_BINARY_DIR})
endforeach()

# tests/nccl: the same contract on a GPU, and what else only a GPU shows; says that it was skipped where there is none.
if(TARGET lockstep_nccl AND TARGET lockstep_torch)
  add_executable(test_nccl EXCLUDE_FROM_ALL tests/nccl/contract_nccl.cpp tests/nccl/feeder_on_gpu.cpp
    tests/nccl/kernels_on_gpu.cpp tests/nccl/layers_on_gpu.cpp tests/nccl/step_graph_on_gpu.cpp
    tests/nccl/updates_on_gpu.cpp)
  target_link_libraries(test_nccl PRIVATE lockstep_torch GTest::gtest GTest::gmock)
  add_dependencies(test_nccl lockstep_nccl lockstep_graph)
  if(TARGET lockstep_kernels)
    add_dependencies(test_nccl lockstep_kernels)
  endif()
  add_dependencies(tests test_nccl)
  add_test(NAME gpu.nccl COMMAND test_nccl WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(gpu.nccl PROPERTIES LABELS gpu TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
