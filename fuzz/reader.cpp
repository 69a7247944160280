// A fuzz target for the compiled reader without Python: every input is read in every layout and counted, and whatever
// comes out is compared with a recount that is too simple to be wrong. How a text is cut and counted depends on its hash, so
// that a file of the corpus is just a file. See README.md beside this one.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "../src/reader/count.h"
#include "../src/reader/regroup.h"

using namespace tiewise;

namespace {

#define CHECK(what)                                                                              \
  if (!(what)) {                                                                                 \
    std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #what), std::abort(); \
  }

// A layout: which column holds what (−1: none), and what its number is.
struct Shape {
  int columns, query, doc, number, rank, tag;
  char kind;
  bool tabs;
};

const Shape shapes[] = {
    {6, 0, 2, 4, 3, 5, 's', false},  {3, 0, 1, 2, 2, -1, 'r', false}, {3, 0, 1, 2, 2, -1, 'r', true},
    {4, 0, 2, 3, -1, -1, 'l', false}, {3, 0, 1, 2, -1, -1, 'l', false}, {3, 0, 1, 2, -1, -1, 'l', true},
    {4, 0, 1, 3, 2, -1, 's', false}, {4, 0, 1, 3, 2, -1, 's', true}, {3, 0, 1, 2, -1, -1, 's', false}, {3, 0, 1, 2, -1, -1, 's', true},
};

// A copy that ends where its memory ends, so that AddressSanitizer sees every byte read beyond it.
struct Exact {
  std::unique_ptr<char[]> bytes;
  size_t size;
  explicit Exact(Id text) : bytes(new char[text.size()]), size(text.size()) { std::copy(text.begin(), text.end(), bytes.get()); }
  Id text() const { return Id(bytes.get(), size); }
};

std::vector<Id> split(Id text, bool (*ends)(char)) {
  std::vector<Id> parts;
  for (size_t at = 0; at < text.size();) {
    size_t stop = at;
    while (stop < text.size() && !ends(text[stop])) ++stop;
    if (stop > at) parts.push_back(text.substr(at, stop - at));
    at = stop + 1;
  }
  return parts;
}

std::vector<Id> cells(Id line, bool tabs) {
  return tabs ? split(line, [](char c) { return c == '\t' || c == '\r'; })
              : split(line, [](char c) { return c == ' ' || (c >= 9 && c <= 13); });
}

std::vector<Id> lines(Id text) {
  std::vector<Id> found;
  while (!text.empty()) {
    const size_t stop = std::min(text.find('\n'), text.size());
    found.push_back(text.substr(0, stop));
    text.remove_prefix(std::min(stop + 1, text.size()));
  }
  return found;
}

// Whether a text is written as a number is: sign, digits with a point, exponent; or infinity.
bool looks_like_number(const std::string& text) {
  if (text.find('\0') != std::string::npos) return false;
  const char* at = text.c_str();
  at += *at == '+' || *at == '-';
  std::string lower;
  for (const char* c = at; *c; ++c) lower += static_cast<char>(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
  if (lower == "inf" || lower == "infinity") return true;
  int digits = 0;
  for (; *at >= '0' && *at <= '9'; ++at) ++digits;
  at += *at == '.';
  for (; *at >= '0' && *at <= '9'; ++at) ++digits;
  if (!digits) return false;
  if (*at == 'e' || *at == 'E') {
    ++at, at += *at == '+' || *at == '-';
    if (!(*at >= '0' && *at <= '9')) return false;
    while (*at >= '0' && *at <= '9') ++at;
  }
  return at == text.c_str() + text.size();
}

// What `number` must say: 1 accept, 0 reject, −1 either (too large or too small for float64).
int expected(Id cell, double& value) {
  const std::string text(cell);
  if (!looks_like_number(text)) return 0;
  value = std::strtod(text.c_str(), nullptr);
  const bool says_inf = text.find_first_of("iI") != std::string::npos;
  const bool whole = text.find_first_not_of("0123456789", text.find_first_of("+-") == 0) == std::string::npos;
  if (whole && std::fabs(value) >= 9007199254740992.0) return 0;  // 2^53
  return (std::isinf(value) && !says_inf) || std::fabs(value) < 2.3e-308 ? -1 : 1;
}

bool equal_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void check_number(Id cell, const char* first) {
  double want = 0;
  const double have = number(cell, first);
  const bool taken = !std::isnan(have);
  const int wanted = expected(cell, want);
  CHECK(wanted < 0 || taken == (wanted == 1));
  CHECK(!taken || equal_bits(have, want));
  int64_t whole = 0;
  const std::string text(cell);
  const size_t sign = text.find_first_of("+-") == 0;
  errno = 0;
  char* end = nullptr;
  const long long strict = std::strtoll(text.c_str(), &end, 10);
  const bool digits = text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
  CHECK(integer(cell, whole) == (digits && errno == 0));
  CHECK(!(digits && errno == 0) || whole == strict);
}

// Read a text and compare every line with what it says.
void check_rows(Id text, const Shape& layout, bool with_rank, const Rows& rows) {
  size_t row = 0, irregular = 0, list = 0, number_of = 0;
  bool ranked = with_rank && layout.rank >= 0, one_tag = true;
  std::set<Id> tags;
  for (const Id line : lines(text)) {
    const size_t here = number_of++;
    const auto found = cells(line, layout.tabs);
    const bool nul = line.find('\0') != Id::npos;
    if (!nul && (found.empty() || found[0][0] == '#')) continue;
    double want = 0;
    int64_t whole = 0;
    const int many = static_cast<int>(found.size());  // words after a tag do not count, if the rank is one
    const bool more = layout.tag >= 0 && many > layout.columns && integer(found[layout.rank], whole);
    const size_t cut = line.find('\r');  // only blanks may follow it
    const bool whole_line = cut == Id::npos || cells(line.substr(cut), false).empty();
    int wanted = !nul && whole_line && (many == layout.columns || more) ? expected(found[layout.number], want) : 0;
    if (wanted && layout.kind == 'l' && std::isinf(want)) wanted = 0;
    if (wanted && layout.kind == 'r' && !(want >= 1 && want < 9007199254740992.0 && want == std::floor(want))) wanted = 0;
    const bool is_irregular = irregular < rows.irregular.size() && rows.irregular[irregular] == here;
    CHECK(wanted < 0 || is_irregular == (wanted == 0));
    if (is_irregular) {
      ++irregular;
      continue;
    }
    CHECK(row < rows.docs.size() && (rows.non_ascii || (is_ascii(found[layout.query]) && is_ascii(found[layout.doc]))));
    if (row == rows.offsets[list + 1]) ++list;
    CHECK(rows.queries[list] == found[layout.query] && rows.docs[row] == found[layout.doc]);
    CHECK(list == 0 || row != rows.offsets[list] || rows.queries[list] != rows.queries[list - 1]);
    CHECK(equal_bits(rows.value[row], layout.kind == 'r' ? -want : want));
    int64_t rank = 0;
    if (ranked) ranked = integer(found[layout.rank], rank);
    CHECK(!rows.ranked || rows.rank[row] == rank);
    if (layout.tag >= 0) tags.insert(found[layout.tag]);
    one_tag = tags.size() < 2;
    ++row;
  }
  CHECK(row == rows.docs.size() && row == rows.value.size() && irregular == rows.irregular.size());
  CHECK(rows.lines == number_of && rows.offsets.back() == row && rows.offsets.size() == rows.queries.size() + 1);
  CHECK(rows.ranked == ranked && rows.rank.size() == (ranked ? row : 0));
  CHECK(rows.one_tag == one_tag && (tags.empty() || !one_tag || rows.tag == *tags.begin()));
}

// Cut a text into chunks and these into whole lists, as Python does: no list is cut, and no byte is lost.
void check_cuts(Id text, size_t chunk, const Shape& layout, const Rows& whole) {
  std::vector<std::string> blocks;
  std::string rest;
  for (size_t at = 0; at < text.size(); at += chunk) {
    const Exact part(rest + std::string(text.substr(at, chunk)));
    const size_t cut = last_list(part.text());
    CHECK(cut <= part.size && (cut == 0 || part.text()[cut - 1] == '\n'));
    if (cut) blocks.emplace_back(part.text().substr(0, cut));
    rest = part.text().substr(cut);
  }
  blocks.push_back(rest);
  Rows rows;
  std::vector<std::string> queries;
  size_t at = 0, bytes = 0;
  for (const auto& block : blocks) {
    rows.parse({block}, layout.columns, layout.kind, layout.tabs, false, false);
    bytes += block.size();
    queries.insert(queries.end(), rows.queries.begin(), rows.queries.end());
    for (size_t row = 0; row < rows.docs.size(); ++row, ++at) {
      CHECK(rows.docs[row] == whole.docs[at] && equal_bits(rows.value[row], whole.value[at]));
    }
  }
  CHECK(at == whole.docs.size() && bytes == text.size());
  // An irregular line is a row of its query until it is looked at; an id of blanks alone is none to `last_list`.
  if (whole.irregular.empty() && !layout.tabs) CHECK(queries == std::vector<std::string>(whole.queries.begin(), whole.queries.end()));
}

// The lines grouped by query, in several shares.
std::string regrouped(Id text, uint32_t shares, size_t chunk, const Shape& layout) {
  std::map<std::string, std::string> want;
  for (const Id line : lines(text)) {
    const auto found = cells(line, layout.tabs);
    if (!found.empty() && found[0][0] != '#') want[std::string(found[0])] += std::string(line) + "\n";
  }
  std::map<std::string, std::string> have;
  std::string all;
  for (uint32_t share = 0; share < shares; ++share) {
    Regrouped part(layout.tabs);
    size_t from = 0;
    while (from < text.size()) {  // whole lines only
      const size_t stop = std::min(text.find('\n', std::min(from + chunk, text.size() - 1)), text.size() - 1) + 1;
      part.add(Exact(tiewise::split(Exact(text.substr(from, stop - from)).text(), shares, layout.tabs)[share]).text());
      from = stop;
    }
    std::string grouped;
    for (std::string lists = part.next(chunk); !lists.empty(); lists = part.next(chunk)) grouped += lists;
    Id last;
    for (const Id line : lines(grouped)) {
      const Id query = cells(line, layout.tabs)[0];
      CHECK(query == last || !have.count(std::string(query)));
      have[std::string(query)] += std::string(line) + "\n";
      last = query;
    }
    all += grouped;
  }
  CHECK(have == want);
  return all;
}

void check_codes(const Rows& rows) {
  Codes codes;
  std::map<std::string, int64_t> known;
  std::vector<std::string> order;
  const size_t half = rows.docs.size() / 2;
  for (const auto& part : {std::vector<Id>(rows.docs.begin(), rows.docs.begin() + half), std::vector<Id>(rows.docs.begin() + half, rows.docs.end())}) {
    std::string bytes;
    for (const Id id : part) bytes += id;
    const Exact lent(bytes);  // gone before the ids are asked for
    std::vector<Id> ids;
    size_t from = 0;
    for (const Id id : part) ids.push_back(lent.text().substr(from, id.size())), from += id.size();
    std::vector<int64_t> have(ids.size());
    std::transform(ids.begin(), ids.end(), have.begin(), [&](Id id) { return codes.code(id); });
    for (size_t at = 0; at < ids.size(); ++at) {
      const auto put = known.emplace(ids[at], static_cast<int64_t>(known.size()));
      if (put.second) order.emplace_back(ids[at]);
      CHECK(have[at] == put.first->second);
    }
  }
  CHECK(std::vector<std::string>(codes.ids().begin(), codes.ids().end()) == order);
}

// Count for judged documents that stand in the lists and for some that do not, and count again row by row.
void check_counts(const Rows& rows, unsigned how) {
  const bool own = how & 1;
  Judgments judged;
  judged.offsets = {0};
  for (size_t list = 0; list < rows.queries.size(); list += 1 + (how >> 1 & 1)) {
    judged.queries.push_back(rows.queries[list]);
    std::set<Id> docs{"none", "q"};
    for (size_t row = rows.offsets[list]; row < rows.offsets[list + 1]; row += 1 + (how >> 2 & 1)) docs.insert(rows.docs[row]);
    for (const Id doc : docs) judged.docs.push_back(doc);
    judged.offsets.push_back(static_cast<int64_t>(judged.docs.size()));
  }
  judged.queries.push_back("\xff no such query");
  judged.docs.push_back("d");
  judged.offsets.push_back(static_cast<int64_t>(judged.docs.size()));
  judged.build_index();

  const size_t many = judged.docs.size(), queries = judged.queries.size();
  std::vector<double> value = rows.value, score(many, std::nan("")), floor(queries, std::nan(""));
  if (how & 8) for (double& one : value) one = std::floor(one);  // as another type would read them: more ties
  std::vector<int64_t> place(rows.queries.size()), row(many, -1), start(many), size(many), floor_size(queries);
  std::vector<int64_t> desc(many), asc(many), given(many), rank(many);
  std::vector<int64_t> length(judged.queries.size(), 0);
  const auto has_judged = std::make_unique<bool[]>(queries), has_self = std::make_unique<bool[]>(queries);
  look_up_queries(rows, judged, place.data());
  const bool again = look_up(rows, judged, place.data(), length.data(), row.data(), has_judged.get(), has_self.get());

  bool twice = false;
  for (size_t list = 0; list < rows.queries.size(); ++list) {
    std::set<Id> seen;
    for (size_t at = rows.offsets[list]; at < rows.offsets[list + 1]; ++at) twice |= !seen.insert(rows.docs[at]).second;
    const auto found = std::find(judged.queries.begin(), judged.queries.end(), rows.queries[list]);
    CHECK(place[list] < 0 || length[place[list]] == static_cast<int64_t>(rows.offsets[list + 1] - rows.offsets[list]));
    CHECK(place[list] == (found == judged.queries.end() ? -1 : found - judged.queries.begin()));
    if (place[list] < 0) continue;
    const auto retrieved = [&](int64_t one) { return one >= 0; };
    const int64_t *of_query = row.data() + judged.offsets[place[list]], *end = row.data() + judged.offsets[place[list] + 1];
    CHECK(has_judged[place[list]] == std::any_of(of_query, end, retrieved));
    const std::vector<Id> own_docs(judged.docs.begin() + judged.offsets[place[list]],
                                   judged.docs.begin() + judged.offsets[place[list] + 1]);
    CHECK(has_judged[place[list]] == has_any(rows, list, own_docs.data(), own_docs.size()));
    CHECK(has_self[place[list]] == has_any(rows, list, &rows.queries[list], 1));
    for (int64_t doc = judged.offsets[place[list]]; doc < judged.offsets[place[list] + 1]; ++doc) {
      const Id* first = rows.docs.data() + rows.offsets[list];
      const Id* last = rows.docs.data() + rows.offsets[list + 1];
      const Id* at = std::find(first, last, judged.docs[doc]);
      CHECK(row[doc] == (at == last ? -1 : at - rows.docs.data()));
      if (!own) score[doc] = row[doc] >= 0 ? value[row[doc]] : doc % 3 ? value[rows.offsets[list] + doc % (last - first)] : 0.25;
    }
  }
  CHECK(twice == again);

  const Groups groups{score.data(), start.data(), size.data(), floor.data(), floor_size.data(),
                      how & 16 ? desc.data() : nullptr, how & 32 ? asc.data() : nullptr, given.data(), rank.data()};
  // The tie groups of the scores before they were rounded, which may be copied.
  std::vector<double> exact_score = score, exact_floor = floor;
  std::vector<int64_t> exact_ints[7];
  for (auto& ints : exact_ints) ints.assign(std::max(many, queries), 0);
  const Groups exact{exact_score.data(),   exact_ints[0].data(), exact_ints[1].data(), exact_floor.data(), exact_ints[2].data(),
                     exact_ints[3].data(), exact_ints[4].data(), exact_ints[5].data(), exact_ints[6].data()};
  Counter exact_counter(rows, judged, row.data(), own, exact), counter(rows, judged, row.data(), own, groups);
  for (size_t list = 0; list < rows.queries.size(); ++list) {
    exact_counter.count_list(list, place[list], rows.value.data());
    counter.count_list(list, place[list], value.data(), rows.value.data(), own ? &exact : nullptr);
  }
  const int64_t tied = counter.totals()[0];

  int64_t want_tied = 0;
  for (size_t list = 0; list < rows.queries.size(); ++list) {
    const size_t low = rows.offsets[list], high = rows.offsets[list + 1];
    std::map<double, int64_t> times;
    for (size_t at = low; at < high; ++at) ++times[value[at]];
    for (const auto& [_, count] : times) want_tied += count > 1 ? count : 0;
    if (place[list] < 0) continue;
    CHECK(floor[place[list]] == times.begin()->first && floor_size[place[list]] == times.begin()->second);
    for (int64_t doc = judged.offsets[place[list]]; doc < judged.offsets[place[list] + 1]; ++doc) {
      if (own) CHECK(row[doc] < 0 ? std::isnan(score[doc]) : equal_bits(score[doc], value[row[doc]]));
      int64_t above = 0, equal = 0, higher = 0, lower = 0, earlier = 0, ranked = 0;
      for (size_t at = low; at < high; ++at) {
        above += value[at] > score[doc];
        if (value[at] != score[doc]) continue;
        ++equal;
        const int64_t here = static_cast<int64_t>(at);
        higher += rows.docs[at] > judged.docs[doc], lower += rows.docs[at] < judged.docs[doc];
        earlier += here < row[doc];
        if (rows.ranked && row[doc] >= 0) {
          ranked += std::make_pair(rows.rank[at], here) < std::make_pair(rows.rank[row[doc]], row[doc]);
        }
      }
      CHECK(start[doc] == above && size[doc] == equal);
      if (again) continue;  // an error, so its orders are not looked at
      CHECK(given[doc] == earlier && rank[doc] == ranked);
      CHECK(desc[doc] == (how & 16 ? higher : 0) && asc[doc] == (how & 32 ? lower : 0));
    }
  }
  CHECK(tied == want_tied);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Exact copy(Id(reinterpret_cast<const char*>(data), size));
  const Id text = copy.text();
  const unsigned how = hashed(text, fixed) & 255;
  const size_t chunk = 1 + how * 3 % 200;
  Rows rows;  // used again, as Python does
  bool ascii = true;
  for (const char c : text) ascii &= static_cast<unsigned char>(c) < 128;
  CHECK(is_ascii(text) == ascii);
  for (const Id line : lines(text)) {
    for (const Id cell : cells(line, false)) {
      check_number(cell, text.data());
      const Exact alone(cell);
      check_number(alone.text(), alone.text().data());
      CHECK(hashed(alone.text()) == hashed(cell) && same(alone.text(), cell));
      const Id shorter = cell.substr(1), other = alone.text().substr(0, shorter.size());
      CHECK(same(shorter, other) == (shorter == other));
    }
  }
  for (const Shape& layout : shapes) {
    rows.parse({text}, layout.columns, layout.kind, layout.tabs, how & 64, true);
    check_rows(text, layout, how & 64, rows);
    check_cuts(text, chunk, layout, rows);
    check_codes(rows);
    const std::string grouped = regrouped(text, 1 + how % 3, chunk, layout);
    rows.parse({grouped}, layout.columns, layout.kind, layout.tabs, how & 64, true);
    if (rows.irregular.empty() || rows.queries.size() == std::set<Id>(rows.queries.begin(), rows.queries.end()).size()) check_counts(rows, how);
  }
  return 0;
}
