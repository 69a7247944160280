// Bytes: finding blanks, parsing numbers, and an index of ids.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <locale>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

// The loops that take most of the time are compiled twice: for all machines, and for those with AVX2.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(TIEWISE_ANY_MACHINE)
#include <immintrin.h>
#define TIEWISE_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#endif
#if defined(__GNUC__)
#define TIEWISE_INLINE __attribute__((always_inline)) inline
#else
#define TIEWISE_INLINE inline
#endif

namespace tiewise {

using Id = std::string_view;

// The separators of columns: all blanks, or only tabs and line ends, so that ids may contain spaces. A byte is one of them
// if it equals the entry of the table at its lower four bits.
struct Blanks {
  const bool tabs;
  alignas(16) char table[16] = {' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', '\v', '\f', '\r', 0, 0};

  explicit Blanks(bool only_tabs) : tabs(only_tabs) {
    if (tabs) table[0] = '\t', table[11] = table[12] = 0;
  }

  bool operator()(char byte) const { return table[byte & 15] == byte; }
};

// Whether a carriage return is not followed by a line break.
inline bool has_lone_return(Id text) {
  size_t at = text.find('\r');
  while (at != Id::npos && at + 1 < text.size() && text[at + 1] == '\n') at = text.find('\r', at + 1);
  return at != Id::npos;
}

// Whether anything but blanks follows a carriage return in a line.
inline bool has_inner_return(Id line) {
  const size_t at = line.find('\r');
  return at != Id::npos && !std::all_of(line.begin() + at, line.end(), Blanks(false));
}

// A bit for each of 64 bytes: set in `blank` if it is a separator, in `newline` if it is a line break. `non_ascii`: one of
// the bytes is not ASCII.
struct Bits {
  uint64_t blank = 0, newline = 0;
  bool non_ascii = false;
};

// Eight bytes as an integer; the first is the lowest.
TIEWISE_INLINE uint64_t eight(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

constexpr uint64_t ones = 0x0101010101010101u;  // times a byte: that byte eight times

struct Portable {
  static Bits bits(const char* bytes, const Blanks& blanks) {
    Bits found;
    for (int at = 0; at < 64; at += 8) {
      const uint64_t some = eight(bytes + at), newline = is(some, '\n');
      const uint64_t control = from(some, '\t') & ~from(some, '\r' + 1) & ~some & ones * 0x80;
      const uint64_t blank = blanks.tabs ? newline | is(some, '\t') | is(some, '\r') : control | is(some, ' ');
      found.blank |= highest(blank) << at;
      found.newline |= highest(newline) << at;
      found.non_ascii |= (some & ones * 0x80) != 0;
    }
    return found;
  }

 private:
  // The highest bit of each byte is set if the (ASCII) byte is at least this, or if it equals this.
  static uint64_t from(uint64_t some, int least) { return (some & ones * 0x7F) + ones * (0x80 - least); }
  static uint64_t is(uint64_t some, char byte) {
    const uint64_t other = some ^ ones * byte;
    return ~(from(other, 1) | other) & ones * 0x80;
  }
  // The highest bits of eight bytes, side by side.
  static uint64_t highest(uint64_t some) { return (some >> 7) * 0x0102040810204080u >> 56; }
};

#ifdef TIEWISE_AVX2
inline bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }

struct Avx2 {
  TIEWISE_AVX2 static inline Bits bits(const char* bytes, const Blanks& blanks) {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(blanks.table)));
    const __m256i newline = _mm256_set1_epi8('\n');
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32));
    Bits found;
    found.blank = equal(low, _mm256_shuffle_epi8(table, low), high, _mm256_shuffle_epi8(table, high));
    found.newline = equal(low, newline, high, newline);
    found.non_ascii = _mm256_movemask_epi8(_mm256_or_si256(low, high)) != 0;
    return found;
  }

 private:
  TIEWISE_AVX2 static inline uint64_t equal(__m256i low, __m256i to, __m256i high, __m256i to_high) {
    const auto few = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, to)));
    const auto more = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, to_high)));
    return few | static_cast<uint64_t>(more) << 32;
  }
};
#endif

inline int bit_count(uint64_t mask) {
#if defined(__GNUC__)
  return __builtin_popcountll(mask);
#else
  int many = 0;
  for (; mask; mask &= mask - 1) ++many;
  return many;
#endif
}

TIEWISE_INLINE int lowest_bit(uint64_t mask) {
#if defined(__GNUC__)
  return __builtin_ctzll(mask);
#else
  int place = 0;
  while (!(mask >> place & 1)) ++place;
  return place;
#endif
}

inline uint64_t word(const char* at, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

// Whether two ids are equal; without a function call for short ids, which are the most frequent.
inline bool same(Id left, Id right) {
  const size_t size = left.size();
  if (size != right.size()) return false;
  const char *a = left.data(), *b = right.data();
  const auto ends_differ = [&](size_t bytes) {  // the first and the last bytes, which may overlap
    return (word(a, bytes) ^ word(b, bytes)) | (word(a + size - bytes, bytes) ^ word(b + size - bytes, bytes));
  };
  if (size > 16) return std::memcmp(a, b, size) == 0;
  if (size >= 8) return !ends_differ(8);
  if (size >= 4) return !ends_differ(4);
  return size == 0 || !((a[0] ^ b[0]) | (a[size / 2] ^ b[size / 2]) | (a[size - 1] ^ b[size - 1]));
}

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// Up to eight characters of a number as the highest bytes of a word; the last character is the highest byte.
struct Digits {
  uint64_t digits;

  TIEWISE_INLINE Digits(const char* end, unsigned unused) : digits((eight(end - 8) ^ ones * '0') >> unused << unused) {}

  // The highest bit of each byte is set if it is not a digit.
  TIEWISE_INLINE uint64_t non_digits() const { return ((digits + ones * (0x80 - 10)) | digits) & ones * 0x80; }

  // Remove the decimal point at this bit and move the characters before it; false if there is no point.
  TIEWISE_INLINE bool remove_point(unsigned at) {
    const uint64_t point = uint64_t{1} << at;
    if ((digits >> at & 0xFF) != ('.' ^ '0')) return false;
    digits = (digits & ~(point * 256 - 1)) | (digits & (point - 1)) * 256;
    return true;
  }

  TIEWISE_INLINE int64_t value() const {  // pairs, then fours, then all eight
    const uint64_t pairs = digits * 2561 >> 8 & 0x00FF00FF00FF00FFu;
    const uint64_t fours = pairs * 6553601 >> 16 & 0x0000FFFF0000FFFFu;
    return static_cast<int64_t>(fours * 42949672960001u >> 32);
  }
};

// Integers below 2^53 and powers of ten up to 10^22 are exact in float64. So their quotient is rounded once, which is
// correct.
constexpr double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr int64_t largest = int64_t{1} << 53;

// The number in one to eight characters; NaN unless they are digits with at most one point, not in front.
TIEWISE_INLINE double short_number(const char* end, unsigned size) {
  const unsigned unused = 64 - 8 * size;
  Digits last(end, unused);
  unsigned at = 56;
  if (const uint64_t others = last.non_digits()) {
    at = lowest_bit(others) - 7u;
    if ((others & (others - 1)) || at == unused || !last.remove_point(at)) return no_number;
  }
  return static_cast<double>(last.value()) / powers[7 - at / 8];
}

// The same for nine to sixteen characters.
inline double middle_number(const char* end, unsigned size) {
  Digits first(end - 8, 128 - 8 * size), last(end, 0);
  unsigned at = 56;
  if (const uint64_t others = first.non_digits()) {
    at = lowest_bit(others) - 7u;
    if ((others & (others - 1)) || last.non_digits() || !first.remove_point(at)) return no_number;
    at -= 64;
  } else if (const uint64_t behind = last.non_digits()) {
    at = lowest_bit(behind) - 7u;
    if ((behind & (behind - 1)) || !last.remove_point(at)) return no_number;
    last.digits |= first.digits >> 56;
    first.digits <<= 8;
  }
  const int64_t value = first.value() * 100000000 + last.value();
  return value < largest ? static_cast<double>(value) / powers[static_cast<int>(56 - at) / 8] : no_number;
}

// Any number, correctly rounded; NaN if it is none.
inline double long_number(Id text) {
  if (text.empty() || text[0] == '-' || text[0] == '+') return no_number;  // a second sign
  double value = no_number;
#if defined(__cpp_lib_to_chars) && !defined(TIEWISE_ANY_MACHINE)
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec != std::errc() || done.ptr != text.data() + text.size()) return no_number;
#else  // a library whose from_chars parses only integers, such as that of macOS
  if (text == "inf") return std::numeric_limits<double>::infinity();  // Python writes all spellings in this way
  if (text.find_first_not_of("0123456789.eE+-") != Id::npos) return no_number;
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  if (!(stream >> value)) {
    // Some libraries report an error for a subnormal number, although they read it.
    if (!(value > 0 && value < std::numeric_limits<double>::min())) return no_number;
    stream.clear(stream.rdstate() & ~std::ios_base::failbit);
  }
  if (stream.peek() != std::char_traits<char>::eof()) return no_number;
#endif
  if (value == 0 && text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != Id::npos) return no_number;
  const bool whole = text.find_first_not_of("0123456789") == Id::npos;
  return whole && value >= static_cast<double>(largest) ? no_number : value;
}

// The number in a text, correctly rounded; NaN if it is none or if Python must check it (too large or too small for
// float64, an integer from 2^53 on, digits that are not ASCII). Bytes from `first` on may be read.
TIEWISE_INLINE double number(Id text, const char* first) {
  const char *at = text.data(), *end = at + text.size();
  const bool negative = *at == '-';
  at += negative || *at == '+';
  const size_t size = end - at;
  double value = no_number;
  if (size - 1 < 8 && end - first >= 8) value = short_number(end, static_cast<unsigned>(size));
  if (std::isnan(value)) {
    if (size - 9 < 8 && end - first >= 16) value = middle_number(end, static_cast<unsigned>(size));
    if (std::isnan(value)) value = long_number(Id(at, size));
  }
  return negative ? -value : value;
}

inline bool integer(Id text, int64_t& value) {
  const char *at = text.data(), *end = at + text.size();
  if (at < end && *at == '+' && end - at > 1 && at[1] != '-') ++at;
  const auto done = std::from_chars(at, end, value);
  return done.ec == std::errc() && done.ptr == end;
}

inline uint64_t mixed(uint64_t left, uint64_t right) {
#if defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(left) * right;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
  uint64_t value = (left ^ (left >> 29)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ right) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
#endif
}

struct HashKey {
  uint64_t start = 0x9E3779B97F4A7C15u, inner = 0xD6E8FEB86659FD93u, last = 0xA0761D6478BD642Fu;

  static HashKey random() {
    HashKey key;
    std::random_device device;
    for (uint64_t* part : {&key.start, &key.inner, &key.last}) *part ^= uint64_t{device()} << 32 | device();
    return key;
  }
};

// The key of this process. Ids come from others: with a key that they know, they could make all ids share one hash.
inline const HashKey secret = HashKey::random();
// A key for what must be the same in every process.
constexpr HashKey fixed;

inline uint64_t hashed(Id id, const HashKey& key = secret) {
  const char* at = id.data();
  size_t left = id.size();
  uint64_t value = key.start ^ left;
  for (; left > 16; at += 8, left -= 8) value = mixed(value ^ word(at, 8), key.inner);
  // The rest is read as two words, which overlap unless there are sixteen bytes.
  const size_t size = left >= 8 ? 8 : left >= 4 ? 4 : 0;
  const uint64_t low = size == 8 ? word(at, 8) : size == 4 ? word(at, 4) : word(at, left);
  const uint64_t high = size == 8 ? word(at + left - 8, 8) : size == 4 ? word(at + left - 4, 4) : 0;
  // A random key may be a poor multiplier for the highest bits, which choose a slot; this constant is a good one.
  return mixed(value ^ low, key.last ^ high) * 0x9E3779B97F4A7C15u;
}

inline bool is_ascii(Id text) {
  uint64_t any = 0;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) any |= word(text.data() + at, 8);
  return !((any | word(text.data() + at, text.size() - at)) & ones * 0x80);
}

// A hash table of indices of ids, with open addressing.
class Index {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // Remove all ids and reserve space for this many.
  void reset(size_t many) {
    int bits = 4;
    while ((size_t{1} << bits) < 4 * many) ++bits;
    shift_ = 64 - bits;
    slots_.assign(size_t{1} << bits, none);
  }

  // The place of the id for which `equal(place)` is true; if there is none, insert `place`.
  template <class Equal>
  uint32_t put(uint64_t hash, uint32_t place, Equal equal) {
    uint32_t& slot = slots_[slot_of(hash, equal)];
    if (slot == none) slot = place;
    return slot;
  }

  template <class Equal>
  uint32_t at(uint64_t hash, Equal equal) const {
    return slots_[slot_of(hash, equal)];
  }

 private:
  template <class Equal>
  size_t slot_of(uint64_t hash, Equal equal) const {
    size_t at = hash >> shift_;
    while (slots_[at] != none && !equal(slots_[at])) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  int shift_ = 60;
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(16, none);
};

}  // namespace tiewise
