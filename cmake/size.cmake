# SPDX-License-Identifier: Apache-2.0
# cmake -D FILE=... -D MOST=BYTES -P size.cmake: fails where the file is larger, and removes it, so that the next build
# fails likewise.
file(SIZE ${FILE} bytes)
if(bytes GREATER MOST)
  file(REMOVE ${FILE})
  message(FATAL_ERROR "${FILE} had ${bytes} bytes, and may have ${MOST}: fewer architectures or instances of its kernels")
endif()
