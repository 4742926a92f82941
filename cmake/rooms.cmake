# A room is a folder under lockstep/; this order is the include order (tests/tree reads it from lockstep/ROOMS).
# Torch-free rooms form liblockstep_core.so, the others liblockstep_torch.so.
file(STRINGS ${CMAKE_SOURCE_DIR}/lockstep/ROOMS room_rows REGEX "^[a-z]")
file(STRINGS ${CMAKE_SOURCE_DIR}/lockstep/verbs/verbs.def verb_rows REGEX "^VERB")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/lockstep/ROOMS ${CMAKE_SOURCE_DIR}/lockstep/verbs/verbs.def)

function(lockstep_room target folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lockstep/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  foreach(door jpeg png webp tiff zlib bzip2 uring beast)
    if(LOCKSTEP_HAS_${door})
      list(FILTER sources EXCLUDE REGEX "/no_${door}_door\\.cpp$")
    else()
      list(FILTER sources EXCLUDE REGEX "/${door}_door\\.cpp$")
    endif()
  endforeach()
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PUBLIC lockstep_flags ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY} UNITY_BUILD_BATCH_SIZE 0)
endfunction()

function(lockstep_add target folder kind)
  file(GLOB any CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lockstep/${folder}/*.cpp)
  if(NOT any)
    return()
  endif()
  if(kind STREQUAL "torch")
    if(LOCKSTEP_HAS_torch)
      lockstep_room(${target} ${folder} lockstep_libtorch)
      lockstep_reads_first(${target} torch)
      set_property(GLOBAL APPEND PROPERTY lockstep_torch_rooms ${target})
    endif()
  else()
    lockstep_room(${target} ${folder})
    set_property(GLOBAL APPEND PROPERTY lockstep_core_rooms ${target})
  endif()
endfunction()

foreach(row ${room_rows})
  string(REGEX MATCH "^([a-z/]+) +([a-z]+)" _ "${row}")
  string(REPLACE "/" "_" name ${CMAKE_MATCH_1})
  lockstep_add(room_${name} ${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()
foreach(row ${verb_rows})
  string(REGEX MATCH "^VERB\\(([a-z]+), ([a-z]+)" _ "${row}")
  lockstep_add(verb_${CMAKE_MATCH_1} verbs/${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

foreach(room_door image:jpeg image:png image:webp image:tiff sources:zlib sources_radar:bzip2 loader:uring web_http:beast)
  string(REPLACE ":" ";" room_door ${room_door})
  list(GET room_door 0 room)
  list(GET room_door 1 door)
  if(LOCKSTEP_HAS_${door})
    target_link_libraries(room_${room} PUBLIC PkgConfig::${door})
  endif()
endforeach()

# Files that travel inside the program: catalogue rows, pages, the peers of measurements, examples.
file(GLOB_RECURSE examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.json ${CMAKE_SOURCE_DIR}/examples/*.py
  ${CMAKE_SOURCE_DIR}/examples/*.sh)
file(GLOB embedded CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/catalogue/*.json
  ${CMAKE_SOURCE_DIR}/catalogue/calibration/*.json ${CMAKE_SOURCE_DIR}/lockstep/web/*/*
  ${CMAKE_SOURCE_DIR}/lockstep/measure/*.py ${CMAKE_SOURCE_DIR}/lockstep/*/*.json ${CMAKE_SOURCE_DIR}/notebooks/*.ipynb)
list(APPEND embedded ${examples})
list(FILTER embedded EXCLUDE REGEX "\\.(h|cpp)$")
set(embedded_cpp ${CMAKE_BINARY_DIR}/generated/embedded.cpp)
add_custom_command(OUTPUT ${embedded_cpp}
  COMMAND python3 ${CMAKE_SOURCE_DIR}/cmake/embed.py ${CMAKE_SOURCE_DIR} ${embedded_cpp} ${embedded}
  DEPENDS ${embedded} ${CMAKE_SOURCE_DIR}/cmake/embed.py VERBATIM)

set(commit_cpp ${CMAKE_BINARY_DIR}/generated/commit.cpp)
add_custom_target(lockstep_commit BYPRODUCTS ${commit_cpp}
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${commit_cpp} -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake)

get_property(core_rooms GLOBAL PROPERTY lockstep_core_rooms)
add_custom_target(core_rooms DEPENDS ${core_rooms})
add_library(lockstep_core SHARED ${embedded_cpp} ${commit_cpp})
add_dependencies(lockstep_core lockstep_commit)
target_link_libraries(lockstep_core PUBLIC lockstep_flags PRIVATE ${core_rooms} Threads::Threads ${CMAKE_DL_LIBS})

add_executable(lockstep lockstep/main.cpp)
target_compile_definitions(lockstep PRIVATE LOCKSTEP_WHEEL_TORCH="${wheel_torch}")  # empty but in a wheel
target_link_libraries(lockstep PRIVATE lockstep_core ${CMAKE_DL_LIBS})
target_link_options(lockstep PRIVATE -Wl,--disable-new-dtags)  # so that dlopen searches the same folder
install(TARGETS lockstep lockstep_core RUNTIME DESTINATION bin LIBRARY DESTINATION lib)

get_property(torch_rooms GLOBAL PROPERTY lockstep_torch_rooms)
add_custom_target(torch_rooms DEPENDS ${torch_rooms})
if(torch_rooms)
  file(WRITE ${CMAKE_BINARY_DIR}/generated/torch_anchor.cpp "// liblockstep_torch.so is made of rooms only\n")
  add_library(lockstep_torch SHARED ${CMAKE_BINARY_DIR}/generated/torch_anchor.cpp)
  target_link_libraries(lockstep_torch PUBLIC lockstep_core lockstep_libtorch PRIVATE ${torch_rooms})
  install(TARGETS lockstep_torch LIBRARY DESTINATION lib)
endif()

if(NOT LOCKSTEP_SANITIZE)  # whose own library must be the first
  add_library(lockstep_listen MODULE plugins/listen/listen.cpp)  # preloaded: lockstep/site/interface.h
  target_link_libraries(lockstep_listen PRIVATE lockstep_flags ${CMAKE_DL_LIBS})
  set_target_properties(lockstep_listen PROPERTIES CXX_VISIBILITY_PRESET hidden)
  install(TARGETS lockstep_listen LIBRARY DESTINATION lib)
  add_dependencies(lockstep lockstep_listen)
endif()

if(LOCKSTEP_HAS_mpi AND EXISTS ${CMAKE_SOURCE_DIR}/plugins/mpi/mpi_plugin.cpp)
  add_library(lockstep_mpi MODULE plugins/mpi/mpi_plugin.cpp)
  target_link_libraries(lockstep_mpi PRIVATE lockstep_flags MPI::MPI_CXX)
  install(TARGETS lockstep_mpi LIBRARY DESTINATION lib)
endif()

if(LOCKSTEP_HAS_hdf5)
  add_library(lockstep_hdf5 MODULE plugins/hdf5/hdf5_plugin.cpp)
  target_link_libraries(lockstep_hdf5 PRIVATE lockstep_flags PkgConfig::hdf5)
  set_target_properties(lockstep_hdf5 PROPERTIES CXX_VISIBILITY_PRESET hidden)
  install(TARGETS lockstep_hdf5 LIBRARY DESTINATION lib)
endif()

if(LOCKSTEP_HAS_cuda)
  add_library(lockstep_cuda MODULE plugins/cuda/cuda_plugin.cpp plugins/cuda/kernels.cpp)
  target_include_directories(lockstep_cuda SYSTEM PRIVATE ${cuda_include} ${cupti_include})
  target_link_libraries(lockstep_cuda PRIVATE lockstep_flags lockstep_libtorch ${torch_lib}/libc10_cuda.so ${cudart} ${cupti})
  set_target_properties(lockstep_cuda PROPERTIES CXX_VISIBILITY_PRESET hidden)
  install(TARGETS lockstep_cuda LIBRARY DESTINATION lib)
endif()

if(LOCKSTEP_HAS_cuda AND LOCKSTEP_NVCC)
  set(gpus)
  foreach(generation 75 80 90 100)  # Turing, Ampere and Ada, Hopper, Blackwell; others from what the driver makes of it
    list(APPEND gpus -gencode arch=compute_${generation},code=sm_${generation})
  endforeach()
  file(GLOB cuda_headers CONFIGURE_DEPENDS plugins/cuda/*.h plugins/cuda/*.cuh lockstep/kernel/*_grid.h lockstep/forecast/kernel_grid.h)
  set(cuda_objects)
  foreach(name regions batch_norm max_pool tokens pixels lstm update)
    set(object ${CMAKE_BINARY_DIR}/generated/${name}.o)
    set(flags)
    if(name STREQUAL regions)
      set(flags -fmad=false)  # overlaps have the bits of the CPU's
    endif()
    add_custom_command(OUTPUT ${object}
      COMMAND ${LOCKSTEP_NVCC} -O3 -std=c++20 ${flags} -Xcompiler -fPIC,-fvisibility=hidden ${gpus}
              -gencode arch=compute_75,code=compute_75 -I ${CMAKE_SOURCE_DIR} -c ${CMAKE_SOURCE_DIR}/plugins/cuda/${name}.cu -o ${object}
      DEPENDS plugins/cuda/${name}.cu ${cuda_headers} lockstep/kernel/box_math.h VERBATIM)
    list(APPEND cuda_objects ${object})
  endforeach()
  add_library(lockstep_kernels MODULE plugins/cuda/regions.cpp plugins/cuda/layers.cpp plugins/cuda/updates.cpp ${cuda_objects})
  target_include_directories(lockstep_kernels SYSTEM PRIVATE ${cuda_include})
  target_link_libraries(lockstep_kernels PRIVATE lockstep_flags lockstep_libtorch ${torch_lib}/libc10_cuda.so ${cudart})
  set_target_properties(lockstep_kernels PROPERTIES CXX_VISIBILITY_PRESET hidden)
  add_custom_command(TARGET lockstep_kernels POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -D FILE=$<TARGET_FILE:lockstep_kernels> -D MOST=40000000 -P ${CMAKE_SOURCE_DIR}/cmake/size.cmake)
  install(TARGETS lockstep_kernels LIBRARY DESTINATION lib)
endif()

if(LOCKSTEP_HAS_cuda AND EXISTS ${torch_lib}/libtorch_cuda.so)
  add_library(lockstep_graph MODULE plugins/cuda/graph_plugin.cpp)
  target_include_directories(lockstep_graph SYSTEM PRIVATE ${cuda_include})
  target_link_libraries(lockstep_graph PRIVATE lockstep_flags lockstep_libtorch ${torch_lib}/libc10_cuda.so
    ${torch_lib}/libtorch_cuda.so ${cudart})
  set_target_properties(lockstep_graph PROPERTIES CXX_VISIBILITY_PRESET hidden)
  install(TARGETS lockstep_graph LIBRARY DESTINATION lib)
endif()

if(LOCKSTEP_HAS_nccl)
  add_library(lockstep_nccl MODULE plugins/cuda/nccl_plugin.cpp)
  target_compile_definitions(lockstep_nccl PRIVATE USE_C10D_NCCL)
  target_include_directories(lockstep_nccl SYSTEM PRIVATE ${nccl_include})
  target_link_libraries(lockstep_nccl PRIVATE lockstep_flags lockstep_libtorch ${torch_lib}/libc10_cuda.so
    ${torch_lib}/libtorch_cuda.so)
  set_target_properties(lockstep_nccl PROPERTIES CXX_VISIBILITY_PRESET hidden)
  install(TARGETS lockstep_nccl LIBRARY DESTINATION lib)
endif()

# What the planner page carries (planner/build.py); the page itself is compiled by Emscripten.
if(TARGET lockstep_torch)
  add_executable(record_zoo EXCLUDE_FROM_ALL planner/record_zoo.cpp)
  target_link_libraries(record_zoo PRIVATE lockstep_torch)
endif()
