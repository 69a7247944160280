// Attributes for functions that are also compiled for AVX2, and whether the compiler has the instructions of F16C.
#pragma once

#include <cstddef>  // defines __GLIBC__ where the library is glibc

// The compiler makes two versions of such a function, and the loader chooses one.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(TIEWISE_ANY_MACHINE)
#define TIEWISE_CLONES __attribute__((target_clones("avx2", "default")))
#define TIEWISE_F16C
#else
#define TIEWISE_CLONES
#endif
#if defined(__GNUC__)
#define TIEWISE_INLINE inline __attribute__((always_inline))
#else
#define TIEWISE_INLINE inline
#endif
