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

# attn_room(name SOURCES a.cc b.cc LINK other...): a static library for one room of the house.
function(attn_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(${name} PUBLIC attn_build_rules ${ROOM_LINK})
endfunction()
