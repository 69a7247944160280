// Rows: a block of a run as one list a query, each row a document id and a number. Text is cut where it lies: ids are
// views into the block, and nothing is copied but the numbers.
#pragma once

#include "text.h"

namespace tiewise {

// Which column of a line holds what (−1: none), and what its number is: a score, a label, or a rank counted from 1.
struct Layout {
  int columns, query, doc, number, rank, tag;
  char kind;  // 's', 'l' or 'r'
  bool tabs;
};

struct Rows {
  std::vector<Id> queries;     // (n_lists,): a query whose rows lie apart has several
  std::vector<size_t> offsets{0};  // (n_lists + 1,)
  std::vector<Id> docs;        // (n_rows,)
  std::vector<double> value;   // (n_rows,)
  std::vector<int64_t> rank;   // (n_rows,) if all are whole numbers, else empty
  std::vector<uint32_t> line;  // (n_rows,): the line of each row, counted from 0
  std::vector<uint32_t> odd;   // lines that are not plain: wrong, or in need of a closer look
  size_t lines = 0;
  Id tag;
  bool one_tag = true;
  bool ranked = false;

  void parse(Id text, const Layout& layout, bool with_rank);

  void clear() {
    queries.clear(), docs.clear(), value.clear(), rank.clear(), line.clear(), odd.clear();
    offsets.assign(1, 0);
    lines = 0, tag = Id(), one_tag = true, ranked = false;
  }

  void add(Id query, Id doc, double number) {
    if (queries.empty() || !same(queries.back(), query)) {
      queries.push_back(query);
      offsets.push_back(docs.size());
    }
    docs.push_back(doc);
    value.push_back(number);
    offsets.back() = docs.size();
  }

 private:
  template <int columns>
  void parse(Id text, const Layout&);
  template <int columns>
  const char* read_plain(const char* line, const char* end, const Layout&);
  const char* read_any(const char* line, const char* end, const Layout&);
  template <class Cell>
  bool read_row(const Cell& cell, const Layout&, const char* limit);
};

inline void Rows::parse(Id text, const Layout& layout, bool with_rank) {
  clear();
  ranked = with_rank && layout.rank >= 0;
  switch (layout.columns) {
    case 3: parse<3>(text, layout); break;
    case 4: parse<4>(text, layout); break;
    default: parse<6>(text, layout);
  }
  if (!ranked) rank.clear();
}

template <int columns>
void Rows::parse(Id text, const Layout& layout) {
  const bool nul = std::memchr(text.data(), 0, text.size()) != nullptr;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    const char* next = nul ? nullptr : read_plain<columns>(at, end, layout);
    at = next ? next : read_any(at, end, layout);
  }
}

// Read a line as almost all are: no longer than 64 bytes (or 128), with one blank between columns. Returns where the next
// one begins, or null if this one is different.
template <int columns>
const char* Rows::read_plain(const char* line, const char* end, const Layout& layout) {
  if (end - line < 128) return nullptr;
  const Blanks blanks{layout.tabs};
  const Bits bits(line, blanks);
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
    uint64_t blank = bits.blank, rest = more.blank & (more.newline ^ (more.newline - 1));
    if (!more.newline || (blank & (blank << 1)) | (blank & 1) | (rest & (rest << 1 | blank >> 63))) return nullptr;
    int found = 0;
    for (; blank && found < columns; blank &= blank - 1) ends[found++] = line + lowest_bit(blank);
    for (; rest && found < columns; rest &= rest - 1) ends[found++] = line + 64 + lowest_bit(rest);
    if (blank | rest || found < columns) return nullptr;
  }
  const auto cell = [&](int at) { return at ? Id(ends[at - 1] + 1, ends[at] - ends[at - 1] - 1) : Id(line, ends[0] - line); };
  if (*line == '#' || !read_row(cell, layout, end)) return nullptr;
  this->line.push_back(static_cast<uint32_t>(lines++));
  return ends[columns - 1] + 1;
}

// Read any line; returns where the next one begins.
inline const char* Rows::read_any(const char* line, const char* end, const Layout& layout) {
  const Blanks blank{layout.tabs};
  const char* newline = static_cast<const char*>(std::memchr(line, '\n', end - line));
  const char* stop = newline ? newline : end;
  Id cells[7];  // one more than any layout has
  int found = 0;
  for (const char* at = line; at < stop && found <= layout.columns;) {
    const char* from = std::find_if_not(at, stop, blank);
    at = std::find_if(from, stop, blank);
    if (at > from) cells[found++] = Id(from, at - from);
  }
  const uint32_t here = static_cast<uint32_t>(lines++);
  const auto cell = [&](int at) { return cells[at]; };
  if (std::memchr(line, 0, stop - line)) {
    odd.push_back(here);
  } else if (found && cells[0][0] != '#') {
    (found == layout.columns && read_row(cell, layout, end) ? this->line : odd).push_back(here);
  }
  return newline ? newline + 1 : end;
}

// Put a row among the others, whose columns are `cell(0)`, `cell(1)`, …; false if its number is not plain.
template <class Cell>
bool Rows::read_row(const Cell& cell, const Layout& layout, const char* limit) {
  double number = 0;
  if (!tiewise::number(cell(layout.number), limit, number)) return false;
  if (layout.kind == 'l' && !std::isfinite(number)) return false;
  if (layout.kind == 'r') {  // counted from 1; rank 1 scores highest
    if (!(number >= 1 && number < 9007199254740992.0 && number == std::floor(number))) return false;
    number = -number;
  }
  add(cell(layout.query), cell(layout.doc), number);
  if (ranked) {
    rank.emplace_back();
    ranked = integer(cell(layout.rank), rank.back());
  }
  if (layout.tag >= 0 && one_tag) {
    if (tag.data() == nullptr) tag = cell(layout.tag);
    one_tag = same(tag, cell(layout.tag));
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
