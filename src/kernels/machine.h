// How functions are compiled for machines with wide registers.
#pragma once

#include <cstddef>  // which says whether the library is glibc

// Functions that are compiled for AVX2 as well; the loader picks one.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(TIEWISE_ANY_MACHINE)
#define TIEWISE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TIEWISE_CLONES
#endif
#if defined(__GNUC__)
#define TIEWISE_INLINE inline __attribute__((always_inline))
#else
#define TIEWISE_INLINE inline
#endif
