// `Lists`: ranked lists that come one by one, counted at once for all orders of ties, for the scores as they are and for
// scores rounded to float32. The arrays are those of `TieGroups`, along the judgments.
//
// The lists of a dictionary have no document twice. So only judged documents are indexed, once for all runs, and the
// documents of a list are looked up among them.
#pragma once

#include <memory>

#include "../measures/statistics.h"
#include "count.h"

namespace tiewise {

// The tie groups of one score type.
struct View {
  std::vector<double> score, lowest;
  std::vector<int64_t> start, size, desc, asc, given, lowest_size;

  View(size_t judged, size_t queries)
      : score(judged, std::nan("")), lowest(queries, std::nan("")), start(judged), size(judged), desc(judged),
        asc(judged), given(judged), lowest_size(queries) {}

  Groups groups() {
    return {score.data(), start.data(), size.data(),  lowest.data(), lowest_size.data(),
            desc.data(),  asc.data(),   given.data(), nullptr};
  }
};

class Lists {
 public:
  // `pool`: all judged documents, if `judged` has only those of some labels.
  Lists(Judgments& judged, Judgments* pool)
      : exact(judged.docs.size(), judged.queries.size()), rounded(exact), length(judged.queries.size()),
        present(judged.queries.size()), found(judged.queries.size()), has_self(judged.queries.size()), judged_(judged),
        pool_(pool), row_(judged.docs.size(), -1), counter_(rows_, judged, row_.data(), true, exact.groups()),
        rounded_counter_(rows_, judged, row_.data(), true, rounded.groups()) {}

  // Begin a list. Its documents are then put into `docs` and `values`.
  void start() { rows_.docs.clear(), rows_.value.clear(); }
  std::vector<Id>& docs() { return rows_.docs; }
  std::vector<double>& values() { return rows_.value; }

  // Count the list of a query, which is its only one. Returns whether the query is judged.
  bool count(Id query, bool self) {
    const int64_t place = judged_.place(query);
    rows_.offsets.assign({0, rows_.docs.size()});
    if (place >= 0) {
      for (size_t at = 0; at < rows_.docs.size(); ++at) {
        const int64_t doc = judged_.find(place, rows_.docs[at]);
        if (doc >= 0) row_[doc] = static_cast<int64_t>(at), found[place] = true;
      }
      for (size_t at = 0; pool_ && !found[place] && at < rows_.docs.size(); ++at) {
        found[place] = pool_->find(place, rows_.docs[at]) >= 0;
      }
      length[place] = static_cast<int64_t>(rows_.docs.size());
      present[place] = true, has_self[place] = self;
    }
    counter_.count_list(0, place, rows_.value.data());
    if (place >= 0) rounded_counter_.round_list(counter_, place, float32_);
    ++n_lists, n_rows += static_cast<int64_t>(rows_.docs.size());
    return place >= 0;
  }

  std::array<int64_t, 6> totals() const { return counter_.totals(); }

  // The statistics of some measures: see `compute_all`.
  void compute(const std::vector<const Tables*>& measures, View& view, const int64_t* before, int64_t depth, bool complete,
               bool moments, double* out, uint8_t* reached) const {
    const size_t queries = length.size();
    std::vector<int64_t> ranks(length), last_start(length);
    for (size_t query = 0; query < queries; ++query) {
      last_start[query] -= view.lowest_size[query];
      if (depth) ranks[query] = std::min(ranks[query], depth);
    }
    const auto truncated = std::make_unique<bool[]>(queries);
    if (!complete) find_truncated(view, truncated.get());
    compute_all(measures,
                {queries, judged_.offsets.data(), view.start.data(), view.size.data(), before, ranks.data(),
                 last_start.data(), view.lowest_size.data(), truncated.get()},
                moments, out, reached);
  }

  View exact, rounded;
  std::vector<int64_t> length;
  std::vector<uint8_t> present, found, has_self;
  int64_t n_lists = 0, n_rows = 0;

 private:
  // Whether each list may have been cut among documents tied with its last one: see `TieGroups.may_be_truncated`.
  void find_truncated(const View& view, bool* truncated) const {
    const size_t queries = length.size();
    int64_t longest = 1, many = 0, lists = 0;
    for (const int64_t one : length) longest = std::max(longest, one);
    for (size_t query = 0; query < queries; ++query) many += length[query] == longest, lists += present[query];
    const bool looks_truncated = many >= 3 && 10 * many >= 9 * lists;
    for (size_t query = 0; query < queries; ++query) {
      const bool goes_on = looks_truncated && length[query] == longest && !holds_all_judged(view, query);
      truncated[query] = view.lowest_size[query] > 1 || goes_on;
    }
  }

  // Whether a list has the judged documents and no others, like reranked candidates.
  bool holds_all_judged(const View& view, size_t query) const {
    const std::vector<int64_t>& all = pool_ ? pool_->offsets : judged_.offsets;
    if (all[query + 1] - all[query] != length[query]) return false;
    const auto first = view.size.begin() + judged_.offsets[query], last = view.size.begin() + judged_.offsets[query + 1];
    return std::all_of(first, last, [](int64_t size) { return size > 0; });
  }

  Judgments& judged_;
  Judgments* pool_;
  Rows rows_;
  std::vector<int64_t> row_;
  std::vector<double> float32_;
  Counter counter_, rounded_counter_;
};

}  // namespace tiewise
