// Rows: a block of a run as one list a query, each row a document id and a number. Text is cut where it lies: ids are
// views into the block, and nothing is copied but the numbers.
#pragma once

#include "text.h"

namespace tiewise {

// The layouts of lines, by how many columns they have and what the number is: a score ('s', TREC's six columns), a label
// ('l', judgments in four or three), or a rank counted from 1 ('r', MS MARCO's three). Known when compiled, since a line
// takes some twenty nanoseconds.
template <int Columns, char Kind>
struct Layout {
  static constexpr int columns = Columns, query = 0, doc = Columns == 3 ? 1 : 2, number = Columns == 6 ? 4 : Columns - 1;
  static constexpr int rank = Kind == 'l' ? -1 : Columns == 6 ? 3 : 2, tag = Columns == 6 ? 5 : -1;
  static constexpr char kind = Kind;
};

struct Rows {
  std::vector<Id> queries;     // (n_lists,): a query whose rows lie apart has several
  std::vector<size_t> offsets;  // (n_lists + 1,)
  std::vector<Id> docs;        // (n_rows,)
  std::vector<double> value;   // (n_rows,)
  std::vector<int64_t> rank;   // (n_rows,) if all are whole numbers, else empty
  std::vector<uint32_t> odd;   // lines that are not plain: wrong, or in need of a closer look
  size_t lines = 0;
  Id tag;
  bool one_tag = true;
  bool ranked = false, tagged = false;  // whether ranks and tags are looked at
  bool wide = false;                    // an id may be more than ASCII

  void parse(Id text, int columns, char kind, bool tabs, bool with_rank, bool with_tag);

  void clear() {
    queries.clear(), docs.clear(), value.clear(), rank.clear(), odd.clear();
    offsets.clear();
    lines = 0, tag = Id(), one_tag = true, ranked = tagged = wide = false;
  }

  void add(Id query, Id doc, double number) {
    if (queries.empty() || !same(queries.back(), query)) {
      queries.push_back(query);
      offsets.push_back(docs.size());
    }
    docs.push_back(doc);
    value.push_back(number);
  }

  void end() { offsets.push_back(docs.size()); }

 private:
  template <class L>
  void parse(Id text, Blanks);
  template <class L>
  const char* read_plain(const char* line, const char* end, Blanks);
  template <class L>
  const char* read_any(const char* line, const char* end, Blanks);
  template <class L, class Cell>
  bool read_row(const Cell& cell, const char* limit);
};

inline void Rows::parse(Id text, int columns, char kind, bool tabs, bool with_rank, bool with_tag) {
  const Blanks blanks{tabs};
  clear();
  ranked = with_rank && kind != 'l', tagged = with_tag;
  if (columns == 6) parse<Layout<6, 's'>>(text, blanks);
  if (columns == 4) parse<Layout<4, 'l'>>(text, blanks);
  if (columns == 3 && kind == 'l') parse<Layout<3, 'l'>>(text, blanks);
  if (columns == 3 && kind == 'r') parse<Layout<3, 'r'>>(text, blanks);
  if (!ranked) rank.clear();
  end();
}

template <class L>
void Rows::parse(Id text, Blanks blanks) {
  const bool nul = std::memchr(text.data(), 0, text.size()) != nullptr;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    const char* next = nul ? nullptr : read_plain<L>(at, end, blanks);
    at = next ? next : read_any<L>(at, end, blanks);
  }
}

// Read a line as almost all are: no longer than 64 bytes (or 128), with one blank between columns. Returns where the next
// one begins, or null if this one is different.
template <class L>
const char* Rows::read_plain(const char* line, const char* end, Blanks blanks) {
  if (end - line < 128) return nullptr;
  constexpr int columns = L::columns;
  const Bits bits(line, blanks);
  wide |= bits.wide;
  const char* ends[columns];
  if (bits.newline) {
    uint64_t blank = bits.blank & (bits.newline ^ (bits.newline - 1));  // those of this line
    if ((blank & (blank << 1)) | (blank & 1)) return nullptr;           // a column would be empty
    for (int at = 0; at < columns - 1; ++at, blank &= blank - 1) {
      ends[at] = line + lowest_bit(blank | uint64_t{1} << 63);
    }
    if (blank != (bits.newline & (~bits.newline + 1))) return nullptr;
    ends[columns - 1] = line + lowest_bit(blank);
  } else {
    const Bits more(line + 64, blanks);
    wide |= more.wide;
    uint64_t blank = bits.blank, rest = more.blank & (more.newline ^ (more.newline - 1));
    if (!more.newline || (blank & (blank << 1)) | (blank & 1) | (rest & (rest << 1 | blank >> 63))) return nullptr;
    int found = 0;
    for (; blank && found < columns; blank &= blank - 1) ends[found++] = line + lowest_bit(blank);
    for (; rest && found < columns; rest &= rest - 1) ends[found++] = line + 64 + lowest_bit(rest);
    if (blank | rest || found < columns) return nullptr;
  }
  const auto cell = [&](int at) { return at ? Id(ends[at - 1] + 1, ends[at] - ends[at - 1] - 1) : Id(line, ends[0] - line); };
  if (*line == '#' || !read_row<L>(cell, end)) return nullptr;
  ++lines;
  return ends[columns - 1] + 1;
}

// Read any line; returns where the next one begins.
template <class L>
const char* Rows::read_any(const char* line, const char* end, Blanks blank) {
  const char* newline = static_cast<const char*>(std::memchr(line, '\n', end - line));
  const char* stop = newline ? newline : end;
  Id cells[L::columns + 1];
  int found = 0;
  for (const char* at = line; at < stop && found <= L::columns;) {
    const char* from = std::find_if_not(at, stop, blank);
    at = std::find_if(from, stop, blank);
    if (at > from) cells[found++] = Id(from, at - from);
  }
  const auto cell = [&](int at) { return cells[at]; };
  const bool nul = std::memchr(line, 0, stop - line);
  wide |= !is_ascii(Id(line, stop - line));
  const bool row = found && cells[0][0] != '#';
  if (nul || (row && (found != L::columns || !read_row<L>(cell, end)))) odd.push_back(static_cast<uint32_t>(lines));
  ++lines;
  return newline ? newline + 1 : end;
}

// Put a row among the others, whose columns are `cell(0)`, `cell(1)`, …; false if its number is not plain.
template <class L, class Cell>
bool Rows::read_row(const Cell& cell, const char* limit) {
  double number = 0;
  if (!tiewise::number(cell(L::number), limit, number)) return false;
  if (L::kind == 'l' && !std::isfinite(number)) return false;
  if (L::kind == 'r') {  // counted from 1; rank 1 scores highest
    if (!(number >= 1 && number < 9007199254740992.0 && number == std::floor(number))) return false;
    number = -number;
  }
  add(cell(L::query), cell(L::doc), number);
  if (L::rank >= 0 && ranked) {
    rank.emplace_back();
    ranked = integer(cell(L::rank), rank.back());
  }
  if (L::tag >= 0 && tagged && one_tag) {
    if (tag.data() == nullptr) tag = cell(L::tag);
    one_tag = same(tag, cell(L::tag));
  }
  return true;
}

// Where the last list of a text begins: the first of the lines at its end that share their query; 0 if all do. The
// text begins anywhere in a line; what follows its last line break counts as part of the last list.
inline size_t last_list(Id text) {
  const Blanks blank{false};
  size_t found = 0;
  Id query;
  for (size_t end = text.rfind('\n'); end != Id::npos && end > 0;) {
    const size_t before = text.rfind('\n', end - 1);
    if (before == Id::npos) return 0;  // the first line may not be whole
    size_t at = before + 1;
    while (at < end && blank(text[at])) ++at;
    size_t stop = at;
    while (stop < end && !blank(text[stop])) ++stop;
    const Id here = text.substr(at, stop - at);
    if (!here.empty() && here[0] != '#') {
      if (query.data() != nullptr && here != query) return found;
      query = here;
      found = before + 1;
    }
    end = before;
  }
  return 0;
}

}  // namespace tiewise
