# What every target of the project shares: the language, warnings, sanitizers and floating-point rules.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The binary is build/<preset>/attn, wherever its sources lie.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

add_library(attn_build_rules INTERFACE)
# -Wrestrict: GCC 12 sees overlaps in std::string where there are none (its bug 105651).
# Fused multiply-adds are written, not hoped for: a compiler that contracts a·b + c changes bits.
target_compile_options(attn_build_rules INTERFACE
  -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Wno-restrict -Werror=return-type -ffp-contract=off)
# Rooms include each other as "room/file.h", and the library as "attn/file.h".
target_include_directories(attn_build_rules INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
if(ATTN_SANITIZE)
  target_compile_options(attn_build_rules INTERFACE -fsanitize=${ATTN_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(attn_build_rules INTERFACE -fsanitize=${ATTN_SANITIZE})
endif()

# For files of kernels. SSE4 has to be asked for. Left out: SSSE3 and the newer AVX-512 flavours, whose code in Highway 1.0.3
# is wrong, and SVE, whose vectors have no fixed size: registers in arrays, as the kernels hold them, need one.
set(ATTN_HIGHWAY_TARGETS
  "HWY_WANT_SSE4;HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")

# attn_room(name SOURCES a.cc b.cc LINK other...): a static library for one room of the house.
function(attn_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:attn_build_rules> ${ROOM_LINK})
endfunction()
