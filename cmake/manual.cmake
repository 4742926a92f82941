# What shells, man and module systems read, made of what the program says about itself (scripts/manual.py): target
# `manual`, no part of a plain build. `make install` and the wheel install it.
set(manual ${CMAKE_BINARY_DIR}/share)
set(manual_path ${torch_lib} ${nvidia_lib})  # a wheel's program finds torch only where it will be installed
string(REPLACE ";" ":" manual_path "${manual_path}")
add_custom_command(OUTPUT ${manual}/stamp
  COMMAND ${CMAKE_COMMAND} -E env "LD_LIBRARY_PATH=${manual_path}:$ENV{LD_LIBRARY_PATH}"
          python3 ${CMAKE_SOURCE_DIR}/scripts/manual.py $<TARGET_FILE:lockstep> ${manual}
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}/stamp
  DEPENDS lockstep $<TARGET_NAME_IF_EXISTS:lockstep_torch> ${CMAKE_SOURCE_DIR}/scripts/manual.py
          ${CMAKE_SOURCE_DIR}/scripts/program_help.py VERBATIM)
add_custom_target(manual DEPENDS ${manual}/stamp)
if(SKBUILD)
  set(share ${SKBUILD_DATA_DIR}/share)  # PREFIX/share of the environment
else()
  set(share share)
endif()
if(NOT SKBUILD)  # a wheel has its environment for that
  file(STRINGS ${CMAKE_SOURCE_DIR}/lockstep/version.h LOCKSTEP_VERSION REGEX LOCKSTEP_VERSION)
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" LOCKSTEP_VERSION "${LOCKSTEP_VERSION}")
  set(prefix ${CMAKE_INSTALL_PREFIX})
  foreach(kind lua tcl)
    configure_file(packaging/modules/lockstep.${kind}.in ${CMAKE_BINARY_DIR}/generated/module.${kind} @ONLY)
  endforeach()
  install(FILES ${CMAKE_BINARY_DIR}/generated/module.lua DESTINATION share/modulefiles/lockstep RENAME ${LOCKSTEP_VERSION}.lua)
  install(FILES ${CMAKE_BINARY_DIR}/generated/module.tcl DESTINATION share/modulefiles-tcl/lockstep RENAME ${LOCKSTEP_VERSION})
endif()
install(DIRECTORY ${manual}/bash-completion ${manual}/zsh ${manual}/fish ${manual}/man DESTINATION ${share} OPTIONAL)
