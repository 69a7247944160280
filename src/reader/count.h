// Counting: for each judged document, the rows of its list that score higher, those that score the same, and those of
// them that a tie-break order puts before it. A block holds the whole list of a query, so blocks write to different
// elements of the same arrays.
#pragma once

#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "rows.h"

namespace tiewise {

// The judged documents of each query, with an index for lookups.
struct Judgments {
  std::vector<Id> queries;
  std::vector<int64_t> offsets;  // (n_queries + 1,)
  std::vector<Id> docs;          // (n_judged,)
  std::vector<uint64_t> hash;    // (n_judged,)
  Index index;

  void build_index() {
    hash.resize(docs.size());
    for (size_t row = 0; row < docs.size(); ++row) hash[row] = hashed(docs[row]);
    index.reset(queries.size());
    for (size_t place = 0; place < queries.size(); ++place) {
      const auto equal = [&](uint32_t other) { return queries[other] == queries[place]; };
      index.put(hashed(queries[place]), static_cast<uint32_t>(place), equal);
    }
  }

  // The judgment of a document of a query, −1 if there is none. The documents of a query are indexed when it is first
  // asked for: not from several threads.
  int64_t find(int64_t query, Id doc) {
    if (documents_.empty()) documents_.resize(queries.size());
    std::optional<Index>& own = documents_[query];
    if (!own) {
      own.emplace();
      own->reset(static_cast<size_t>(offsets[query + 1] - offsets[query]));
      for (int64_t at = offsets[query]; at < offsets[query + 1]; ++at) {
        own->put(hash[at], static_cast<uint32_t>(at), [](uint32_t) { return false; });
      }
    }
    const uint64_t key = hashed(doc);
    const uint32_t at = own->at(key, [&](uint32_t other) { return hash[other] == key && same(docs[other], doc); });
    return at == Index::none ? -1 : static_cast<int64_t>(at);
  }

  int64_t place(Id query) const {
    const uint32_t at = index.at(hashed(query), [&](uint32_t place) { return queries[place] == query; });
    return at == Index::none ? -1 : static_cast<int64_t>(at);
  }

 private:
  std::vector<std::optional<Index>> documents_;  // by query
};

// The documents of a list, which are indexed part by part, so that the index of a long list fits into the cache.
class ListIndex {
 public:
  // Read a list and divide it into parts by hash.
  void read(const Id* docs, size_t many) {
    docs_ = docs, parts_ = 1;
    while (many > parts_ * part_size) parts_ *= 2;
    hash_.resize(many), ends_.assign(parts_ + 1, 0);
    if (parts_ == 1) {
      for (size_t row = 0; row < many; ++row) hash_[row] = hashed(docs[row]);
      ends_[1] = many;
      return;
    }
    rows_.resize(many);
    for (size_t row = 0; row < many; ++row) ++ends_[part(hashed(docs[row])) + 1];
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    std::vector<size_t> next(ends_);
    for (size_t row = 0; row < many; ++row) {
      const uint64_t hash = hashed(docs[row]);  // again: faster than to keep it, which takes memory
      const size_t at = next[part(hash)]++;
      hash_[at] = hash, rows_[at] = static_cast<uint32_t>(row);
    }
  }

  size_t parts() const { return parts_; }
  // The part of a hash: its lowest bits, since the highest choose a slot of the index.
  size_t part(uint64_t hash) const { return hash & (parts_ - 1); }

  // Index a part; returns whether it has a document twice.
  bool index(size_t part) {
    const size_t first = ends_[part], last = ends_[part + 1];
    bool repeated = false;
    index_.reset(last - first);
    for (size_t at = first; at < last; ++at) {
      const auto equal = [&](uint32_t other) { return hash_[other] == hash_[at] && same(docs_[row(other)], docs_[row(at)]); };
      repeated |= index_.put(hash_[at], static_cast<uint32_t>(at), equal) != at;
    }
    return repeated;
  }

  // The row of a document whose hash is in the part that is indexed, −1 if there is none.
  int64_t find(Id doc, uint64_t hash) const {
    const auto equal = [&](uint32_t other) { return hash_[other] == hash && same(docs_[row(other)], doc); };
    const uint32_t at = index_.at(hash, equal);
    return at == Index::none ? -1 : static_cast<int64_t>(row(at));
  }

 private:
  static constexpr size_t part_size = 4096;  // rows

  size_t row(size_t at) const { return parts_ == 1 ? at : rows_[at]; }

  const Id* docs_ = nullptr;
  size_t parts_ = 1;
  std::vector<size_t> ends_;  // (n_parts + 1,): where each part begins, and the end of the last
  std::vector<uint64_t> hash_;  // (n_rows,), part by part
  std::vector<uint32_t> rows_;  // (n_rows,), if there are several parts
  Index index_;
};

// Look up queries. `place`: the index of each list's query among the judged ones, −1 if it is not judged.
inline void look_up_queries(const Rows& rows, const Judgments& judged, int64_t* place) {
  for (size_t list = 0; list < rows.queries.size(); ++list) place[list] = judged.place(rows.queries[list]);
}

// Look up judged documents. `length`: the length of the list of each judged query. `row`: the row of each judged document,
// −1 if it was not retrieved. `found`: whether the list of each judged query has one of its judged documents. `has_self`:
// whether it has a document with the query's own id. Returns whether a list has a document twice.
inline bool look_up(const Rows& rows, const Judgments& judged, const int64_t* place, int64_t* length, int64_t* row,
                    bool* found, bool* has_self) {
  bool repeated = false;
  ListIndex index;
  std::vector<int64_t> wanted;  // the judged documents of the query, by part
  for (size_t list = 0; list < rows.queries.size(); ++list) {
    const size_t low = rows.offsets[list], many = rows.offsets[list + 1] - low;
    const int64_t query = place[list];
    index.read(rows.docs.data() + low, many);
    wanted.resize(query < 0 ? 0 : static_cast<size_t>(judged.offsets[query + 1] - judged.offsets[query]));
    if (query >= 0) {
      length[query] = static_cast<int64_t>(many);
      std::iota(wanted.begin(), wanted.end(), judged.offsets[query]);
    }
    const auto part_of = [&](int64_t doc) { return index.part(judged.hash[doc]); };
    if (index.parts() > 1) {
      std::sort(wanted.begin(), wanted.end(), [&](int64_t left, int64_t right) { return part_of(left) < part_of(right); });
    }
    const uint64_t self = hashed(rows.queries[list]);
    auto doc = wanted.begin();
    for (size_t part = 0; part < index.parts(); ++part) {
      repeated |= index.index(part);
      for (; doc != wanted.end() && part_of(*doc) == part; ++doc) {
        const int64_t at = index.find(judged.docs[*doc], judged.hash[*doc]);
        row[*doc] = at < 0 ? -1 : static_cast<int64_t>(low) + at;
        found[query] |= at >= 0;
      }
      if (query >= 0 && index.part(self) == part) has_self[query] = index.find(rows.queries[list], self) >= 0;
    }
  }
  return repeated;
}

// Whether a list has one of these documents.
inline bool has_any(const Rows& rows, size_t list, const Id* docs, size_t many) {
  Index index;
  index.reset(many);
  const auto equal_to = [&](Id doc) { return [docs, doc](uint32_t other) { return same(docs[other], doc); }; };
  for (size_t at = 0; at < many; ++at) index.put(hashed(docs[at]), static_cast<uint32_t>(at), equal_to(docs[at]));
  for (size_t row = rows.offsets[list]; row < rows.offsets[list + 1]; ++row) {
    if (index.at(hashed(rows.docs[row]), equal_to(rows.docs[row])) != Index::none) return true;
  }
  return false;
}

// Whether a list has a document twice.
inline bool has_duplicates(const std::vector<Id>& docs, const int64_t* offsets, size_t lists) {
  ListIndex index;
  for (size_t list = 0; list < lists; ++list) {
    index.read(docs.data() + offsets[list], static_cast<size_t>(offsets[list + 1] - offsets[list]));
    for (size_t part = 0; part < index.parts(); ++part) {
      if (index.index(part)) return true;
    }
  }
  return false;
}

// The fingerprint of an id after others, whose fingerprint is `value`: the same on every machine, unlike a hash. See
// tiewise.ties.shards.
inline uint64_t fingerprint(Id id, uint64_t value = 0x9E3779B97F4A7C15u) {
  const auto add = [&](uint64_t number) {
    value = (value ^ number) * 0xBF58476D1CE4E5B9u;
    value ^= value >> 32;
  };
  for (size_t at = 0; at < id.size(); at += 8) add(word(id.data() + at, std::min<size_t>(8, id.size() - at)));
  add(id.size());
  return value;
}

// The fingerprints of rows that are below a limit.
inline std::vector<uint64_t> fingerprints(const Rows& rows, uint64_t limit) {
  std::vector<uint64_t> found;
  for (size_t list = 0; list < rows.queries.size(); ++list) {
    const uint64_t query = fingerprint(rows.queries[list]);
    for (size_t row = rows.offsets[list]; row < rows.offsets[list + 1]; ++row) {
      const uint64_t one = fingerprint(rows.docs[row], query);
      if (one < limit) found.push_back(one);
    }
  }
  return found;
}

// An id and its first sixteen bytes as two numbers, which decide most comparisons of ids.
struct SortKey {
  uint64_t high, low;
  Id id;

  explicit SortKey(Id id) : high(number(id, 0)), low(number(id, 8)), id(id) {}

  bool operator<(const SortKey& other) const {
    return high != other.high ? high < other.high : low != other.low ? low < other.low : id < other.id;
  }

 private:
  // Eight bytes, the first as the highest, with zeros after the end of the id.
  static uint64_t number(Id id, size_t from) {
    char bytes[8] = {};
    if (from < id.size()) std::memcpy(bytes, id.data() + from, std::min<size_t>(8, id.size() - from));
    uint64_t value = eight(bytes);
#if defined(__GNUC__)
    return __builtin_bswap64(value);
#else
    uint64_t turned = 0;
    for (int at = 0; at < 8; ++at, value >>= 8) turned = turned << 8 | (value & 0xFF);
    return turned;
#endif
  }
};

// The arrays of `TieGroups`, along the judged documents and along the judged queries.
struct Groups {
  double* score;  // (n_judged,)
  int64_t *start, *size;
  double* lowest;  // (n_queries,)
  int64_t* lowest_size;
  int64_t *desc, *asc, *given, *rank;  // (n_judged,), null if not needed
};

// How often the next score of a list is higher, how often it is equal, and the number of sequences of equal scores.
struct Neighbours {
  size_t rises = 0, same = 0, sequences = 0;

  TIEWISE_INLINE Neighbours(const double* value, size_t many) {
    if (many < 2) return;
    rises = value[1] > value[0], sequences = same = value[1] == value[0];
    for (size_t at = 2; at < many; ++at) {
      const bool equal = value[at] == value[at - 1];
      rises += value[at] > value[at - 1], same += equal, sequences += equal & (value[at - 1] != value[at - 2]);
    }
  }
};

#ifdef TIEWISE_AVX2
TIEWISE_AVX2 inline Neighbours neighbours_avx2(const double* value, size_t many) { return {value, many}; }
#endif
inline Neighbours neighbours(const double* value, size_t many) {
#ifdef TIEWISE_AVX2
  if (has_avx2()) return neighbours_avx2(value, many);
#endif
  return {value, many};
}

class Counter {
 public:
  // `own`: the judged scores are those of these rows. Otherwise the rows are one shard of several. `scored`: the judged
  // scores are already in `groups`; `row` need not be known before `find_rows`.
  Counter(const Rows& rows, const Judgments& judged, const int64_t* row, bool own, bool scored, Groups groups)
      : rows_(rows), judged_(judged), row_(row), own_(own), scored_(scored), out_(groups) {}
  virtual ~Counter() = default;

  // The number of rows that share their score with another row of their list, how many neighbours in the ranking have
  // equal scores, and the trend of the scores along the lists: see `Trend` in tiewise.data.runs.
  std::array<int64_t, 6> totals() const { return {tied_, same_, trend_[0], trend_[1], trend_[2], trend_[3]}; }

  // Count a list of some query. `value`: the scores of all rows, rounded to some type. `exact`: the scores before they
  // were rounded, and their tie groups, which are copied if rounding changed none.
  void count_list(size_t list, int64_t place, const double* value, const double* exact_value = nullptr,
                  const Groups* exact = nullptr) {
    value_ = value;
    low_ = rows_.offsets[list];
    many_ = rows_.offsets[list + 1] - low_;
    const Neighbours along = neighbours(value_ + low_, many_);
    descending_ = along.rises == 0;
    ranked_ = value_ + low_;
    const bool rising = along.rises && along.rises + along.same + 1 == many_;
    trend_[0] += rising, trend_[1] += descending_ && along.same + 1 < many_, trend_[2] += along.same + 1 < many_;
    trend_[3] += rising ? along.rises : 0;
    const Neighbours found = descending_ ? along : sort();
    same_ += static_cast<int64_t>(found.same), tied_ += static_cast<int64_t>(found.same + found.sequences);
    if (place < 0 || !many_) return;
    if (exact && descending_ && same_groups(along, exact_value)) {
      copy(place, *exact, ranked_[many_ - 1]);
    } else {
      out_.lowest[place] = ranked_[many_ - 1];
      out_.lowest_size[place] = ranked_ + many_ - std::lower_bound(ranked_, ranked_ + many_, ranked_[many_ - 1], std::greater<>());
      count_judged(judged_.offsets[place], judged_.offsets[place + 1]);
    }
  }

  // Count the list that another counter has just counted, for its scores rounded to float32.
  void round_list(const Counter& exact, int64_t place, std::vector<double>& value) {
    low_ = exact.low_, many_ = exact.many_, descending_ = exact.descending_;
    const double* ranked = exact.ranked_;
    bool joins = false;
    for (size_t at = 1; at < many_; ++at) {
      joins |= static_cast<float>(ranked[at]) == static_cast<float>(ranked[at - 1]) && ranked[at] != ranked[at - 1];
    }
    value.assign(exact.value_, exact.value_ + low_ + many_);
    for (double& one : value) one = static_cast<float>(one);
    for (int64_t doc = judged_.offsets[place]; doc < judged_.offsets[place + 1]; ++doc) {
      out_.score[doc] = static_cast<float>(exact.out_.score[doc]);
    }
    if (joins) {
      count_list(0, place, value.data());
    } else {
      value_ = value.data();
      copy(place, exact.out_, many_ ? static_cast<float>(ranked[many_ - 1]) : std::nan(""));
    }
  }

 protected:
  // Find the ids of the rows of a tie group, and which of them are judged documents, if that is not known yet.
  virtual void find_rows(const std::vector<int64_t>&) {}

 private:
  // The scores of the list, best first.
  Neighbours sort() {
    sorted_.assign(value_ + low_, value_ + low_ + many_);
    std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
    ranked_ = sorted_.data();
    return neighbours(ranked_, many_);
  }

  // Whether the list has the same tie groups as before its scores were rounded: it descends, and rounding joined none.
  bool same_groups(const Neighbours& rounded, const double* exact_value) const {
    const Neighbours exact = neighbours(exact_value + low_, many_);
    return exact.rises == 0 && exact.same == rounded.same;
  }

  void copy(int64_t place, const Groups& exact, double lowest) {
    out_.lowest[place] = lowest, out_.lowest_size[place] = exact.lowest_size[place];
    const int64_t first = judged_.offsets[place], last = judged_.offsets[place + 1];
    fill_scores(first, last);
    const auto copy_all = [&](int64_t* to, const int64_t* from) {
      if (to) std::copy(from + first, from + last, to + first);
    };
    copy_all(out_.start, exact.start), copy_all(out_.size, exact.size);
    copy_all(out_.desc, exact.desc), copy_all(out_.asc, exact.asc);
    copy_all(out_.given, exact.given), copy_all(out_.rank, exact.rank);
  }

  void fill_scores(int64_t first, int64_t last) {
    if (scored_) return;
    for (int64_t doc = first; doc < last; ++doc) out_.score[doc] = row_[doc] < 0 ? std::nan("") : value_[row_[doc]];
  }

  // Count for the judged documents `first` to `last`.
  void count_judged(int64_t first, int64_t last) {
    retrieved_.clear();
    fill_scores(first, last);
    for (int64_t doc = first; doc < last; ++doc) {
      if (!std::isnan(out_.score[doc])) retrieved_.push_back(doc);
    }
    if (retrieved_.empty()) return;
    std::sort(retrieved_.begin(), retrieved_.end(), [&](int64_t left, int64_t right) {
      const double a = out_.score[left], b = out_.score[right];
      return a != b ? a < b : left < right;
    });
    probes_.clear(), bounds_.clear();
    for (size_t at = 0; at < retrieved_.size(); ++at) {
      const double score = out_.score[retrieved_[at]];
      if (probes_.empty() || probes_.back() != score) probes_.push_back(score), bounds_.push_back(at);
    }
    bounds_.push_back(retrieved_.size());
    const double* const end = ranked_ + many_;
    bool gathered = descending_;
    for (size_t probe = 0; probe < probes_.size(); ++probe) {
      const double* first = std::lower_bound(ranked_, end, probes_[probe], std::greater<>());
      const double* last = std::upper_bound(first, end, probes_[probe], std::greater<>());
      group_.clear();
      if (ordered(last - first)) {
        if (!gathered) gathered = true, gather();
        if (descending_) {
          for (const double* at = first; at < last; ++at) group_.push_back(at - value_);
        } else {
          const auto less = [](const auto& member, size_t other) { return member.first < other; };
          auto at = std::lower_bound(members_.begin(), members_.end(), probe, less);
          for (; at != members_.end() && at->first == probe; ++at) group_.push_back(at->second);
        }
      }
      store(probe, first - ranked_, last - first);
    }
  }

  // The rows of a list that is not sorted whose score is that of a judged document, by probe.
  void gather() {
    members_.clear();
    for (size_t at = low_; at < low_ + many_; ++at) {
      const size_t place = std::lower_bound(probes_.begin(), probes_.end(), value_[at]) - probes_.begin();
      if (place < probes_.size() && probes_[place] == value_[at]) members_.emplace_back(place, at);
    }
    std::stable_sort(members_.begin(), members_.end(), [](auto& a, auto& b) { return a.first < b.first; });
  }

  // Whether the order inside a group of this size matters: a judged document of another shard may tie with a single row
  // of this shard.
  bool ordered(int64_t size) const { return size >= (own_ ? 2 : 1); }

  bool has_row(int64_t doc) const { return own_ || row_[doc] >= 0; }

  void store(size_t probe, int64_t above, int64_t equal) {
    const size_t first = bounds_[probe], last = bounds_[probe + 1];
    for (size_t at = first; at < last; ++at) out_.start[retrieved_[at]] = above, out_.size[retrieved_[at]] = equal;
    if (!ordered(equal)) return;
    const auto key_of = [&](int64_t row) { return SortKey(rows_.docs[row]); };
    docs_.assign(retrieved_.begin() + first, retrieved_.begin() + last);
    find_rows(group_);
    if (out_.desc || out_.asc) {
      std::vector<std::pair<SortKey, int64_t>> keys;
      for (const int64_t doc : docs_) keys.emplace_back(SortKey(judged_.docs[doc]), doc);
      count_before(keys, key_of, [&](int64_t doc, int64_t after) {  // rows with a higher id
        if (out_.desc) out_.desc[doc] = after;
        if (out_.asc) out_.asc[doc] = equal - has_row(doc) - after;
      });
    }
    docs_.erase(std::remove_if(docs_.begin(), docs_.end(), [&](int64_t doc) { return !has_row(doc); }), docs_.end());
    if (out_.given) {
      std::vector<std::pair<int64_t, int64_t>> keys;
      for (const int64_t doc : docs_) keys.emplace_back(-row_[doc], doc);
      count_before(keys, [](int64_t row) { return -row; }, [&](int64_t doc, int64_t after) { out_.given[doc] = after; });
    }
    if (out_.rank && rows_.ranked) {  // ~ reverses the order of all integers
      const auto place = [&](int64_t row) { return std::make_pair(~rows_.rank[row], ~row); };
      std::vector<std::pair<std::pair<int64_t, int64_t>, int64_t>> keys;
      for (const int64_t doc : docs_) keys.emplace_back(place(row_[doc]), doc);
      count_before(keys, place, [&](int64_t doc, int64_t after) { out_.rank[doc] = after; });
    }
  }

  // For each (key, document), the number of rows of the group with a higher key.
  template <class Key, class KeyOf, class Put>
  void count_before(std::vector<std::pair<Key, int64_t>>& keys, KeyOf key_of, Put put) {
    std::sort(keys.begin(), keys.end());
    std::vector<int64_t> beyond(keys.size() + 1, 0);  // rows by how many keys are lower
    const auto less = [](const std::pair<Key, int64_t>& key, const Key& row) { return key.first < row; };
    for (const int64_t row : group_) {
      ++beyond[std::lower_bound(keys.begin(), keys.end(), key_of(row), less) - keys.begin()];
    }
    int64_t after = 0;
    for (size_t at = keys.size(); at-- > 0;) {
      after += beyond[at + 1];
      put(keys[at].second, after);
    }
  }

  const Rows& rows_;
  const Judgments& judged_;
  const int64_t* row_;
  const bool own_, scored_;
  Groups out_;
  const double *value_ = nullptr, *ranked_ = nullptr;  // the scores; those of a list, best first
  size_t low_ = 0, many_ = 0;
  int64_t tied_ = 0, same_ = 0;
  std::array<int64_t, 4> trend_{};
  bool descending_ = false;
  std::vector<int64_t> retrieved_, group_, docs_;
  std::vector<size_t> bounds_;
  std::vector<double> probes_, sorted_;
  std::vector<std::pair<size_t, int64_t>> members_;
};

}  // namespace tiewise
