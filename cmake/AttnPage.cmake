# The page that attn explore serves: part of the program on request alone, since it is built with tools that nothing else
# here needs.
option(ATTN_BUILD_PAGE "Embed the page that attn explore serves" OFF)
set(attn_own_page ${CMAKE_BINARY_DIR}/page/attn.html)
set(ATTN_PAGE_FILE ${attn_own_page} CACHE FILEPATH "The page that is embedded: one HTML file")

# page/ defines the target attn_page, whose output is that file. Another file is taken as it is, and needs no tools.
if(ATTN_BUILD_PAGE AND ATTN_PAGE_FILE STREQUAL attn_own_page)
  add_subdirectory(page)
endif()

# attn_embed_page(target source): the source, which is one of the target's, finds the page at ATTN_PAGE_FILE, and is built
# anew when the page changes. Called from the folder that defines the target.
function(attn_embed_page target source)
  if(NOT ATTN_BUILD_PAGE)
    return()
  endif()
  if(NOT TARGET attn_page AND NOT EXISTS ${ATTN_PAGE_FILE})
    message(FATAL_ERROR "ATTN_PAGE_FILE: there is no file ${ATTN_PAGE_FILE}; build the page first, or give another")
  endif()
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS "ATTN_PAGE_FILE=\"${ATTN_PAGE_FILE}\"")
  set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS ${ATTN_PAGE_FILE})
  if(TARGET attn_page)
    add_dependencies(${target} attn_page)
  endif()
endfunction()
