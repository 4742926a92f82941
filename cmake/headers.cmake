# Headers that are parsed once for all targets of a kind: libtorch's take 7 s of the 10 that reading a small room takes, and
# gmock's most of what reading a small test takes. A source includes what it uses all the same; a build without unity
# (scripts/test_long.sh unity-off) has no precompiled headers either, and finds what is missing.
set(torch_headers <ATen/Context.h> <ATen/TensorOperators.h> <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h>
  <ATen/ops/empty.h> <ATen/ops/zeros.h> <torch/library.h>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h>)
set(std_headers <algorithm> <chrono> <filesystem> <functional> <map> <memory> <optional> <span> <string> <thread> <vector>)

# lockstep_headers(KIND executable|object LIBRARIES... HEADERS...): what the targets of a kind read first. They must be
# compiled with the very flags of those targets, which for an executable are others than for a library.
function(lockstep_headers kind form libraries headers)
  if(NOT LOCKSTEP_UNITY OR LOCKSTEP_SANITIZE)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/generated/${kind}_headers.cpp)
  file(WRITE ${source}.new "int main() { return 0; }\n")
  file(COPY_FILE ${source}.new ${source} ONLY_IF_DIFFERENT)
  if(form STREQUAL "executable")
    add_executable(${kind}_headers EXCLUDE_FROM_ALL ${source})
    target_compile_options(${kind}_headers PRIVATE -O0)
  else()
    add_library(${kind}_headers OBJECT EXCLUDE_FROM_ALL ${source})
  endif()
  target_link_libraries(${kind}_headers PRIVATE lockstep_flags ${libraries})
  target_precompile_headers(${kind}_headers PRIVATE ${headers} ${std_headers})
  target_compile_options(${kind}_headers PRIVATE -fpch-preprocess)
endfunction()

function(lockstep_reads_first target kind)
  if(TARGET ${kind}_headers)
    target_precompile_headers(${target} REUSE_FROM ${kind}_headers)
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
  endif()
endfunction()

if(LOCKSTEP_HAS_torch)
  lockstep_headers(torch object lockstep_libtorch "${torch_headers}")
endif()
