# A wheel (pyproject.toml, python/build) lies in site-packages/lockstep, beside the torch that is installed there: its
# libraries are found relative to each other. docs/install.md says what this was tried with.
if(NOT LOCKSTEP_HAS_torch)
  message(FATAL_ERROR "a wheel needs torch 2.11 to be built; fix: python -m pip install torch==2.11.0, or LOCKSTEP_TORCH=FOLDER "
                      "in the environment, the folder that holds torch/")
endif()
file(STRINGS ${LOCKSTEP_TORCH}/torch/version.py wheel_torch REGEX "^__version__")
string(REGEX REPLACE "^[^'\"]*['\"]([^'\"]*)['\"].*" "\\1" wheel_torch "${wheel_torch}")

set(LOCKSTEP_TESTS OFF)
set(beside "$ORIGIN/../../torch/lib")
foreach(folder ${nvidia_lib})
  file(RELATIVE_PATH folder ${LOCKSTEP_TORCH} ${folder})
  list(APPEND beside "$ORIGIN/../../${folder}")
endforeach()
set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/../lib" ${beside})
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH OFF)

# Two functions that Debian 12's compiler binds to versions of 2022, though older ones do the same: with these the wheel
# runs on glibc 2.34 (RHEL 9). At the link, so that what ccache holds of other builds is this build's too.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_library(lockstep_older_symbols STATIC ${CMAKE_CURRENT_LIST_DIR}/older_symbols.cpp)
  add_link_options("-Wl,--wrap=hypot,--wrap=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE")
  link_libraries(lockstep_older_symbols)
endif()
