// The statistics of a measure over all orders of tied documents, by closed forms, for one list.
//
// Three forms cover the measures that people use most. With the gain g of a document, the weight w of a rank and the
// number of documents with a gain above it, `seen`, a document adds
//
//     sum                 g · w(rank)                      nDCG, DCG, P, R, F, Hits, RBP, Rprec, Judged
//     average precision   (1 + seen) / rank                AP, w(rank) = 1 / rank
//     first               w(rank) if seen = 0, else 0      RR, Success
//
// Gains are 0 or more and weights do not rise with the rank, so the best order of a tie group has descending gains. What a
// measure is made of comes as tables from its Python class. Numbers of equations are those of tiewise.metrics.engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

namespace tiewise {

enum class Form { sum, average_precision, first };

// A measure, for some judgments.
struct Tables {
  Form form = Form::sum;
  const double* gain = nullptr;    // (n_judged,)
  const double* weight = nullptr;  // (n_ranks + 1,): by rank, from 1 on; there is one for each rank within the depth
  size_t n_weights = 0;
  const int64_t* depth = nullptr;   // (n_queries,): the most ranks that count
  const double* divisor = nullptr;  // (n_queries,): what sums are divided by
  bool by_length = false;           // divided by the length of the list
};

// The judged documents of one list: their tie groups, and the end of the list.
struct List {
  const int64_t *start, *size, *before;  // (n_judged,); `before` is null if no order is asked for
  int64_t length, last_start, last_size;  // ranks that count; documents above the last tie group, and in it
  bool truncated;                         // whether the list may go on there
};

struct Statistics {
  double expected = 0, minimum = 0, maximum = 0, variance = 0, oblivious = 0;
  double lowest = 0, highest = 0;  // of the expectation, if the list is truncated
  bool reached = false;            // whether the measure looks at ranks after which it may be
};

class Computation {
 public:
  // Without `moments`, expectations and variances are left out.
  explicit Computation(bool moments) : moments_(moments) {}

  // The documents `first` to `last` of the judgments are those of a query.
  void read(const List& list, int64_t first, int64_t last) {
    list_ = list;
    retrieved_.clear(), groups_.clear(), others_.clear();
    for (int64_t doc = first; doc < last; ++doc) {
      if (list.size[doc] > 0) retrieved_.push_back({list.start[doc], list.before ? list.before[doc] : 0, doc});
      if (list.truncated && (list.size[doc] == 0 || list.start[doc] == list.last_start)) others_.push_back(doc);
    }
    const auto ranked = [](const Retrieved& a, const Retrieved& b) {
      return a.start != b.start ? a.start < b.start : a.place < b.place;
    };
    if (!std::is_sorted(retrieved_.begin(), retrieved_.end(), ranked)) {
      std::stable_sort(retrieved_.begin(), retrieved_.end(), ranked);
    }
    for (size_t at = 0; at < retrieved_.size(); ++at) {
      const int64_t start = retrieved_[at].start;
      if (groups_.empty() || groups_.back().start != start) {
        groups_.push_back({start, list.size[retrieved_[at].doc], at, at});
      }
      groups_.back().last = at + 1;
    }
  }

  // The statistics of a measure; a table of weights that is too short for the list is an error.
  Statistics compute(const Tables& of, int64_t query) {
    tables_ = &of;
    depth_ = std::min(list_.length, of.depth[query]);
    if (depth_ >= static_cast<int64_t>(of.n_weights)) throw std::out_of_range("a rank without a weight");
    found_ = Statistics(), seen_ = 0;
    found_.reached = list_.truncated && depth_ > list_.last_start;
    bool above = true;  // whether all groups so far stand above the last one
    for (const Group& group : groups_) {
      if (group.start >= depth_ || (of.form == Form::first && seen_)) break;
      if (found_.reached && above && group.start >= list_.last_start) above = false, truncate();
      if (group.size == 1) {
        add_document(of.gain[retrieved_[group.first].doc], group.start + 1);
        continue;
      }
      documents_.clear();
      for (size_t at = group.first; at < group.last; ++at) {
        const double gain = of.gain[retrieved_[at].doc];
        if (gain != 0) documents_.push_back({gain, retrieved_[at].place});
      }
      if (!documents_.empty()) add_group(group.start, group.size);
    }
    if (found_.reached && above) truncate();
    divide(of.by_length ? static_cast<double>(list_.length) : of.divisor[query]);
    return found_;
  }

 private:
  struct Retrieved {
    int64_t start, place, doc;  // place: documents of its tie group above it in some order
  };

  struct Group {
    int64_t start, size;
    size_t first, last;  // of the retrieved documents
  };

  struct Document {
    double gain;
    int64_t place;
  };

  double weight(int64_t rank) const { return rank <= depth_ ? tables_->weight[rank] : 0.0; }

  // Eq. (1): a document with `seen` others above it.
  double term(double gain, int64_t rank, int64_t seen) const {
    switch (tables_->form) {
      case Form::sum:
        return gain * weight(rank);
      case Form::average_precision:  // one rounding: the number of other tools, to the last bit
        return rank <= depth_ ? static_cast<double>(seen + 1) / static_cast<double>(rank) : 0.0;
      default:
        return seen ? 0.0 : weight(rank);
    }
  }

  // Terms are added rank by rank, as other tools do. Here of a document that is not tied.
  void add_document(double gain, int64_t rank) {
    if (gain == 0) return;
    const double one = term(gain, rank, seen_);
    found_.minimum += one, found_.maximum += one, found_.oblivious += one, found_.expected += one;
    ++seen_;
  }

  void add_group(int64_t start, int64_t size) {
    const auto many = static_cast<int64_t>(documents_.size());
    gains_.clear();
    for (const Document& one : documents_) gains_.push_back(one.gain);
    std::sort(gains_.begin(), gains_.end(), std::greater<>());
    const bool alike = many == size && (tables_->form != Form::sum || gains_.front() == gains_.back());
    for (int64_t at = 0; at < many; ++at) {
      const double best = term(gains_[at], start + 1 + at, seen_ + at);
      found_.maximum += best;
      if (alike) {
        found_.minimum += best, found_.oblivious += best, found_.expected += best;
      } else {
        found_.minimum += term(gains_[many - 1 - at], start + size - many + 1 + at, seen_ + at);
        found_.oblivious += term(documents_[at].gain, start + 1 + documents_[at].place, seen_ + at);
      }
    }
    if (!alike && moments_) add_moments(start, static_cast<double>(size));
    seen_ += many;
  }

  // The mean and the variance of what a tie group adds.
  void add_moments(int64_t start, double size) {
    switch (tables_->form) {
      case Form::sum:
        return add_sum(start, size);
      case Form::average_precision:
        return add_precision(start, size);
      default:
        if (seen_ == 0) add_first(start, size);
    }
  }

  int64_t inside(int64_t start, double size) const { return std::min(static_cast<int64_t>(size), depth_ - start); }

  // Eqs. (2) and (3), with sums of squares around the mean.
  void add_sum(int64_t start, double size) {
    const int64_t ranks = inside(start, size);
    const double* weights = tables_->weight + start + 1;
    double total = 0, squares = 0, gain = 0, gain_squares = 0;
    for (int64_t at = 0; at < ranks; ++at) total += weights[at];
    for (const double one : gains_) gain += one;
    const double mean = total / size, mean_gain = gain / size;
    for (int64_t at = 0; at < ranks; ++at) squares += (weights[at] - mean) * (weights[at] - mean);
    for (const double one : gains_) gain_squares += (one - mean_gain) * (one - mean_gain);
    squares += (size - static_cast<double>(ranks)) * mean * mean;
    gain_squares += (size - static_cast<double>(gains_.size())) * mean_gain * mean_gain;
    found_.expected += gain / size * total;
    found_.variance += squares * gain_squares / (size - 1);
  }

  // The first relevant document is in a slot with the chance that none stood before, times relevant / left.
  void add_first(int64_t start, double size) {
    const auto relevant = static_cast<double>(gains_.size());
    const int64_t ranks = std::min(inside(start, size), static_cast<int64_t>(size - relevant) + 1);
    const double* weights = tables_->weight + start + 1;
    chance_.resize(static_cast<size_t>(ranks));
    double none = 1, mean = 0, any = 0, variance = 0;
    for (int64_t at = 0; at < ranks; ++at) {
      const double left = size - static_cast<double>(at);
      chance_[at] = none * (relevant / left);
      any += chance_[at], mean += chance_[at] * weights[at];
      none *= (left - relevant) / left;
    }
    for (int64_t at = 0; at < ranks; ++at) variance += chance_[at] * (weights[at] - mean) * (weights[at] - mean);
    found_.expected += mean;
    found_.variance += variance + std::max(1 - any, 0.0) * mean * mean;
  }

  // The mean, and the variance by Hoeffding's decomposition of a quadratic form in the indicators of relevance (theory.md,
  // Eq. 9).
  void add_precision(int64_t start, double n) {
    const double r = static_cast<double>(gains_.size()), seen = static_cast<double>(seen_) + 1;
    const int64_t ranks = inside(start, n);
    const double* weights = tables_->weight + start + 1;
    const double beta = n > 1 ? (r - 1) / (n - 1) : 0.0, beyond = n - static_cast<double>(ranks);
    // Taking one constant off all n weights leaves the variance as it is, and less cancels.
    const double shift = beyond == 0 ? weights[ranks - 1] : 0.0;
    double mean = 0, after = 0;
    for (int64_t at = 0; at < ranks; ++at) {
      mean += weights[at] * (seen + beta * static_cast<double>(at));
      after += weights[at] - shift;
    }
    found_.expected += r / n * mean;
    const double n_2 = std::max(n - 2, 1.0), slope = n > 2 ? (r - 1) / n_2 : 0.0;
    b_.resize(static_cast<size_t>(ranks));
    double linear_sum = 0, weighted = 0, squares = 0;
    for (int64_t at = 0; at < ranks; ++at) {
      const double a = weights[at] - shift, i = static_cast<double>(at);
      after -= a;
      b_[at] = i * a + after;
      linear_sum += seen * a + slope * b_[at], weighted += i * a, squares += i * a * a;
    }
    const double centre = linear_sum / n, total = weighted / std::max(n - 1, 1.0);
    double first = beyond * centre * centre, rest = beyond * (total / n_2) * (total / n_2);
    for (int64_t at = 0; at < ranks; ++at) {
      const double linear = seen * (weights[at] - shift) + slope * b_[at] - centre, alpha = (b_[at] - total) / n_2;
      first += linear * linear, rest += alpha * alpha;
    }
    rest = squares - (n - 2) * rest - total * total;
    const double pairs = r * (r - 1) * (n - r) * (n - r - 1) / std::max(n * (n - 1) * (n - 2) * (n - 3), 1.0);
    found_.variance += std::max(r * (n - r) / std::max(n * (n - 1), 1.0) * first + pairs * rest, 0.0);
  }

  // What the groups above the last one add, and the same with the best documents in the last one: judged documents of the
  // group, and those that were not retrieved.
  void truncate() {
    found_.lowest = found_.highest = found_.expected;
    candidates_.clear();
    for (const int64_t doc : others_) {
      if (tables_->gain[doc] > 0) candidates_.push_back(tables_->gain[doc]);
    }
    std::sort(candidates_.begin(), candidates_.end(), std::greater<>());
    const int64_t many = std::min(static_cast<int64_t>(candidates_.size()), list_.last_size);
    for (int64_t at = 0; at < many; ++at) {
      found_.highest += term(candidates_[at], list_.last_start + 1 + at, seen_ + at);
    }
  }

  void divide(double divisor) {
    Statistics& s = found_;
    const auto divided = [&](double sum) { return divisor == 0 ? 0.0 : sum / divisor; };  // without a divisor it is 0
    s.minimum = divided(s.minimum), s.maximum = divided(s.maximum);
    if (s.minimum == s.maximum) {  // no order matters
      s.expected = s.oblivious = s.minimum, s.variance = 0;
    } else {
      s.expected = std::min(std::max(divided(s.expected), s.minimum), s.maximum);
      s.oblivious = divided(s.oblivious), s.variance = divided(divided(s.variance));
    }
    s.lowest = s.reached ? std::min(s.expected, divided(s.lowest)) : s.expected;
    s.highest = s.reached ? std::max(s.expected, divided(s.highest)) : s.expected;
  }

  const bool moments_;
  const Tables* tables_ = nullptr;
  List list_{};
  Statistics found_;
  int64_t depth_ = 0, seen_ = 0;
  std::vector<Retrieved> retrieved_;
  std::vector<Group> groups_;
  std::vector<int64_t> others_;
  std::vector<Document> documents_;  // with a gain, of a tie group
  std::vector<double> gains_, candidates_, chance_, b_;
};

// The tie groups of all lists, along the judgments and along the queries.
struct AllLists {
  size_t queries;
  const int64_t *offsets, *start, *size, *before, *length, *last_start, *last_size;
  const bool* truncated;
};

// The statistics of some measures, (7, n_measures, n_queries), and whether each looks at ranks after which a list may be
// truncated, (n_measures, n_queries).
inline void compute_all(const std::vector<const Tables*>& measures, const AllLists& all, bool moments, double* out,
                        uint8_t* reached) {
  const size_t many = measures.size();
  Computation computation(moments);
  for (size_t query = 0; query < all.queries; ++query) {
    computation.read({all.start, all.size, all.before, all.length[query], all.last_start[query], all.last_size[query],
                      all.truncated[query]},
                     all.offsets[query], all.offsets[query + 1]);
    for (size_t at = 0; at < many; ++at) {
      const Statistics one = computation.compute(*measures[at], static_cast<int64_t>(query));
      const double values[] = {one.expected,  one.minimum, one.maximum, one.variance,
                               one.oblivious, one.lowest,  one.highest};
      for (size_t column = 0; column < 7; ++column) out[(column * many + at) * all.queries + query] = values[column];
      reached[at * all.queries + query] = one.reached;
    }
  }
}

}  // namespace tiewise
