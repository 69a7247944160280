// Rows: a block of a run as one list for each query; a row is a document id and a number. Ids are views into the text of
// the block; only numbers are copied.
#pragma once

#include <stdexcept>

#include "text.h"

namespace tiewise {

// The layout of a line: its columns and the kind of its number, which is a score ('s', TREC's six columns, four with a rank
// before it, or three), a label ('l', judgments in four or three) or a rank from 1 ('r', MS MARCO's three). A template, since
// a line takes about 20 ns.
template <int Columns, char Kind>
struct Layout {
  static constexpr int columns = Columns, query = 0, doc = Columns == 3 || (Columns == 4 && Kind == 's') ? 1 : 2;
  static constexpr int number = Columns == 6 ? 4 : Columns - 1, tag = Columns == 6 ? 5 : -1;
  static constexpr int rank = Kind == 'l' || (Columns == 3 && Kind == 's') ? -1 : Columns == 6 ? 3 : 2;
  static constexpr char kind = Kind;
};

struct Rows {
  std::vector<Id> queries;     // (n_lists,): a query appears again if its rows are not contiguous
  std::vector<size_t> offsets;  // (n_lists + 1,)
  std::vector<Id> docs;        // (n_rows,)
  std::vector<double> value;   // (n_rows,)
  std::vector<int64_t> rank;   // (n_rows,) if all are integers, else empty
  std::vector<uint32_t> irregular;   // lines that Python must check
  size_t lines = 0;
  Id tag;
  bool one_tag = true;
  bool ranked = false, tagged = false;  // whether ranks and tags are needed
  bool non_ascii = false;                    // an id may contain other characters than ASCII

  // Parse texts of whole lines, one after another. `run_tag` is the tag that a row with more words must have; any if it is
  // empty.
  void parse(const std::vector<Id>& texts, int columns, char kind, bool tabs, bool with_rank, bool with_tag,
             Id run_tag = Id());

  void clear() {
    queries.clear(), docs.clear(), value.clear(), rank.clear(), irregular.clear();
    offsets.clear();
    lines = 0, tag = Id(), one_tag = true, ranked = tagged = non_ascii = false;
  }

  // Start a list at this row, unless the last list has the same query.
  void start_list(Id query, size_t row) {
    if (!queries.empty() && same(queries.back(), query)) return;
    queries.push_back(query);
    offsets.push_back(row);
  }

  void end() { offsets.push_back(docs.size()); }

 private:
  Id run_tag_;

  template <class L>
  void parse(const std::vector<Id>& texts, const Blanks&);
  template <class L>
  const char* read_regular(const char* line, const char* end, const Blanks&);
#ifdef TIEWISE_AVX2
  template <class L>
  TIEWISE_AVX2 const char* read_regular_avx2(const char* line, const char* end, const Blanks&);
#endif
  template <class L, class Machine>
  const char* read_regular_on(const char* line, const char* end, const Blanks&);
  template <class L>
  const char* read_any(const char* line, const char* end, const Blanks&);
  template <class L>
  static double read_number(Id text, const char* first);
  template <class L>
  void read_rank_and_tag(Id rank_text, Id tag_text);
};

inline void Rows::parse(const std::vector<Id>& texts, int columns, char kind, bool tabs, bool with_rank, bool with_tag,
                        Id run_tag) {
  const Blanks blanks(tabs);
  clear();
  ranked = with_rank && kind != 'l' && !(columns == 3 && kind == 's'), tagged = with_tag, run_tag_ = run_tag;
  if (columns == 6 && kind == 's') {
    parse<Layout<6, 's'>>(texts, blanks);
  } else if (columns == 4 && kind == 's') {
    parse<Layout<4, 's'>>(texts, blanks);
  } else if (columns == 3 && kind == 's') {
    parse<Layout<3, 's'>>(texts, blanks);
  } else if (columns == 4 && kind == 'l') {
    parse<Layout<4, 'l'>>(texts, blanks);
  } else if (columns == 3 && kind == 'l') {
    parse<Layout<3, 'l'>>(texts, blanks);
  } else if (columns == 3 && kind == 'r') {
    parse<Layout<3, 'r'>>(texts, blanks);
  } else {
    throw std::invalid_argument("unknown layout");
  }
  if (!ranked) rank.clear();
  end();
}

template <class L>
void Rows::parse(const std::vector<Id>& texts, const Blanks& blanks) {
  size_t bytes = 0;
  for (const Id text : texts) bytes += text.size();
  docs.reserve(bytes / 16), value.reserve(bytes / 16);  // few lines are shorter
  for (const Id text : texts) {
    const bool odd = std::memchr(text.data(), 0, text.size()) != nullptr || has_lone_return(text);
    const char *at = text.data(), *end = at + text.size();
    while (at < end) {
      if (!odd) at = read_regular<L>(at, end, blanks);
      if (at < end) at = read_any<L>(at, end, blanks);
    }
  }
}

template <class L>
const char* Rows::read_regular(const char* line, const char* end, const Blanks& blanks) {
#ifdef TIEWISE_AVX2
  if (has_avx2()) return read_regular_avx2<L>(line, end, blanks);
#endif
  return read_regular_on<L, Portable>(line, end, blanks);
}

// Where the cells of a regular line end: at most 128 bytes, one blank after each cell, and perhaps another one before the
// line break.
template <int Columns, class Machine>
struct CellEnds {
  unsigned ends[Columns];
  size_t length;  // up to the line break
  bool non_ascii;

  TIEWISE_INLINE bool find(const char* line, const char* end, const Blanks& blanks) {
    const Bits bits = Machine::bits(line, blanks);
    non_ascii = bits.non_ascii;
    if (!bits.newline) return find_in_two(line, end, blanks, bits);
    uint64_t blank = of_line(bits, 0);
    if (bit_count(blank) != Columns || (blank & (blank << 1 | 1))) return false;
    for (int at = 0; at < Columns; ++at, blank &= blank - 1) ends[at] = lowest_bit(blank);
    length = lowest_bit(bits.newline);
    return true;
  }

  TIEWISE_INLINE Id cell(const char* line, int column) const {
    return column ? Id(line + ends[column - 1] + 1, ends[column] - ends[column - 1] - 1) : Id(line, ends[0]);
  }

 private:
  // The blanks up to the first line break; a blank just before it replaces it.
  TIEWISE_INLINE static uint64_t of_line(const Bits& bits, uint64_t before) {
    const uint64_t blank = bits.blank & (bits.newline ^ (bits.newline - 1));
    return blank & ~((blank << 1 | before) & bits.newline);
  }

  TIEWISE_INLINE bool find_in_two(const char* line, const char* end, const Blanks& blanks, const Bits& bits) {
    if (end - line < 128) return false;
    const Bits more = Machine::bits(line + 64, blanks);
    const uint64_t low = bits.blank, high = of_line(more, low >> 63);
    if (!more.newline || bit_count(low) + bit_count(high) != Columns) return false;
    if ((low & (low << 1 | 1)) | (high & (high << 1 | low >> 63))) return false;
    unsigned found[Columns], many = 0;
    for (uint64_t left = low; left; left &= left - 1) found[many++] = lowest_bit(left);
    for (uint64_t left = high; left; left &= left - 1) found[many++] = 64 + lowest_bit(left);
    std::copy(found, found + Columns, ends);
    length = 64 + lowest_bit(more.newline);
    non_ascii |= more.non_ascii;
    return true;
  }
};

// Read regular lines; returns the start of the first line that is not regular.
template <class L, class Machine>
TIEWISE_INLINE const char* Rows::read_regular_on(const char* line, const char* end, const Blanks& blanks) {
  constexpr size_t batch = 256;  // rows that are buffered
  Id doc[batch];
  double score[batch];
  size_t buffered = 0;
  const auto flush = [&] {
    docs.insert(docs.end(), doc, doc + buffered), value.insert(value.end(), score, score + buffered);
    lines += buffered;
    buffered = 0;
  };
  const char *const first = line, *last = line;  // the previous row
  size_t size = 0, unused = 0;                   // of its query, and unused bits of a word that holds it
  const bool more = ranked | tagged;
  bool any_non_ascii = false;
  while (end - line >= 64) {
    CellEnds<L::columns, Machine> cells;
    if (!cells.find(line, end, blanks)) break;
    score[buffered] = read_number<L>(cells.cell(line, L::number), L::number < 4 ? first : line);
    if (std::isnan(score[buffered])) break;
    doc[buffered] = cells.cell(line, L::doc);
    if (cells.ends[0] != size || (eight(line) ^ eight(last)) << unused || (size > 8 && std::memcmp(line, last, size))) {
      if (*line == '#') break;
      start_list(cells.cell(line, L::query), docs.size() + buffered);
      size = cells.ends[0], unused = size < 8 ? 64 - 8 * size : 0;
    }
    if (more) read_rank_and_tag<L>(cells.cell(line, std::max(L::rank, 0)), cells.cell(line, std::max(L::tag, 0)));
    any_non_ascii |= cells.non_ascii;
    last = line;
    line += cells.length + 1;
    if (++buffered == batch) flush();
  }
  flush();
  non_ascii |= any_non_ascii;
  return line;
}

#ifdef TIEWISE_AVX2
template <class L>
TIEWISE_AVX2 const char* Rows::read_regular_avx2(const char* line, const char* end, const Blanks& blanks) {
  return read_regular_on<L, Avx2>(line, end, blanks);
}
#endif

// Read any line; returns the start of the next one.
template <class L>
const char* Rows::read_any(const char* line, const char* end, const Blanks& blank) {
  const char* newline = static_cast<const char*>(std::memchr(line, '\n', end - line));
  const char* stop = newline ? newline : end;
  Id cells[L::columns + 1];
  int found = 0;
  for (const char* at = line; at < stop && found <= L::columns;) {
    const char* from = std::find_if_not(at, stop, blank);
    at = std::find_if(from, stop, blank);
    if (at > from) cells[found++] = Id(from, at - from);
  }
  non_ascii |= !is_ascii(Id(line, stop - line));
  const bool nul = std::memchr(line, 0, stop - line), row = found && cells[0][0] != '#';
  // Words after the run tag are ignored if the rank is an integer and the tag is the run's; otherwise an id may contain a
  // blank.
  int64_t rank_is;
  const bool more = L::tag >= 0 && found > L::columns && integer(cells[std::max(L::rank, 0)], rank_is) &&
                    (run_tag_.empty() || cells[std::max(L::tag, 0)] == run_tag_);
  const bool fits = (found == L::columns || more) && !has_inner_return(Id(line, stop - line));
  const double number = fits ? read_number<L>(cells[L::number], line) : no_number;
  if (nul || (row && std::isnan(number))) {
    irregular.push_back(static_cast<uint32_t>(lines));
  } else if (row) {
    start_list(cells[L::query], docs.size());
    docs.push_back(cells[L::doc]), value.push_back(number);
    read_rank_and_tag<L>(cells[std::max(L::rank, 0)], cells[std::max(L::tag, 0)]);
  }
  ++lines;
  return newline ? newline + 1 : end;
}

// The number of a row; NaN if Python must check it.
template <class L>
TIEWISE_INLINE double Rows::read_number(Id text, const char* first) {
  const double number = tiewise::number(text, first);
  if (L::kind == 'l') return std::isfinite(number) ? number : no_number;
  if (L::kind == 's') return number;
  const bool rank = number >= 1 && number < static_cast<double>(largest) && number == std::floor(number);
  return rank ? -number : no_number;  // rank 1 has the highest score
}

// The rank and the tag of a row, if they are needed.
template <class L>
void Rows::read_rank_and_tag(Id rank_text, Id tag_text) {
  if (L::rank >= 0 && ranked) {
    rank.emplace_back();
    ranked = integer(rank_text, rank.back());
  }
  if (L::tag >= 0 && tagged && one_tag) {
    if (tag.data() == nullptr) tag = tag_text;
    one_tag = same(tag, tag_text);
  }
}

// The query of a line, none if the line is no row.
inline Id query_of(Id line, const Blanks& blank) {
  const char *stop = line.data() + line.size(), *at = std::find_if_not(line.data(), stop, blank);
  return at == stop || *at == '#' ? Id() : Id(at, std::find_if(at, stop, blank) - at);
}

// The query of the first row of a text, none if it has no rows.
inline Id first_query(Id text, const Blanks& blank) {
  Id query;
  while (query.empty() && !text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    query = query_of(text.substr(0, end), blank);
    text.remove_prefix(end);
  }
  return query;
}

// The start of the last list of whole lines: the first of the last lines with the same query; 0 if the first row has it,
// too, as in a part of a long list. Bytes after the last line break belong to the last list. Lines without rows are no
// list, so they end where the text does. `query`: that of the last list, none if there are no rows.
inline size_t last_list(Id text, Id* query = nullptr) {
  const Blanks blank(false);
  const size_t last = text.rfind('\n') + 1;  // 0 if there is no line break
  const Id first = first_query(text.substr(0, last), blank);
  size_t end = last, found = first.empty() ? last : 0;
  Id its_query;
  while (!first.empty() && end > 0) {
    while (end > 0 && blank(text[end - 1])) --end;
    const size_t line = text.substr(0, end).rfind('\n') + 1;
    const Id here = query_of(text.substr(line, end - line), blank);
    if (!here.empty()) {
      if (its_query.empty()) its_query = here;
      if (its_query == first || here != its_query) break;
      found = line;
    }
    end = line;
  }
  if (query) *query = its_query;
  return found;
}

}  // namespace tiewise
