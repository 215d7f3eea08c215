// What a shared library of attn exports: the namespace as these headers open it, and nothing that only the sources know.
#pragma once

#if defined(__GNUC__)
#define ATTN_EXPORT [[gnu::visibility("default")]]
#else
#define ATTN_EXPORT
#endif
