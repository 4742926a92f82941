# Writes OUT with the commit that is built ("-dirty" when files differ from it, "unknown" outside a checkout), and only
# when it changed: run at every build. cmake -DROOT=... -DOUT=... -P commit.cmake
execute_process(COMMAND git -C ${ROOT} describe --always --dirty --abbrev=10 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
set(content "#include \"lockstep/base/embedded.h\"\n\nnamespace lockstep::base {\nstd::string_view build_commit() { return \"${commit}\"; }\n}  // namespace lockstep::base\n")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT "${before}" STREQUAL "${content}")
  file(WRITE ${OUT} "${content}")
endif()
