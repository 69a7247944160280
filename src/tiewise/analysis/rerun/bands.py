"""`NoiseEffects`: what noise of the scores does to the means of a report: its rerun bands, and noise of a given size.

A rerun band is drawn around the value that was seen, not around the mean of the draws: scores that were computed once
have noise already, and noise added to them would be counted three times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiewise.analysis.measuring import Evaluation, count_run
from tiewise.analysis.rerun.residuals import MIN_DOCUMENTS, GridPair, ScoreNoise, compare_scores
from tiewise.data.columns import Floats
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_source
from tiewise.io.edited_run import edit_source
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.noise import Noise, NoiseLaw, Rerun, half_width
from tiewise.metrics.noise_draws import NoiseDraws
from tiewise.metrics.noise_expectation import expected_under_noise, has_formula
from tiewise.metrics.scored_lists import ScoredLists
from tiewise.results.wording import ATOL, NumberFormat, count_noun, join_names, spell_option
from tiewise.ties.counted import RunSource

RUN = "the run"  #: what the first run is called


class _Sample(NamedTuple):
    """The means of a measure in random draws."""

    mean: float
    std: float
    standard_error: float  # of the mean
    std_error: float  # of the standard deviation
    half_width: float  # of a band for the difference of two draws


class NoiseEffects:
    """What noise does to the measures of an evaluation; `rerun` and `noise` are those of `evaluate`."""

    def __init__(self, evaluation: Evaluation, *, rerun: Any = None, noise: Any = None):
        self._evaluation = evaluation
        self._law = None if noise is None else NoiseLaw.parse(noise)
        self._second: Evaluation | None = None  # the second run, where it has the same queries
        self.score_noise: ScoreNoise | None = None  #: of the pair of runs
        self.name = "the second run"
        self._refusal = ""  # why there is no band for any measure
        self._found: dict[Measure, tuple[Rerun | None, Noise | None, str]] = {}
        self._lists: dict[GroupedJudgments, ScoredLists] = {}
        if rerun is not None:
            self._calibrate(rerun)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lists": {}}

    # -- two runs ---------------------------------------------------------------------------------------------

    def _calibrate(self, rerun: Any) -> None:
        """Compare the second run with this one, or the two runs of a pair."""
        is_pair = isinstance(rerun, tuple) or (isinstance(rerun, list) and len(rerun) == 2)
        if is_pair and len(rerun) != 2:
            raise InputError(
                f"rerun has {count_noun(len(rerun), 'run')}. Give the second run, or a pair (again_a, again_b)."
            )
        sources = [self._edit(as_source(one)) for one in (rerun if is_pair else (rerun,))]
        runs = [self._rows(source) for source in sources]
        self.name = _name_of(runs[-1], "the pair" if is_pair else self.name)
        own = self._rows(self._evaluation.source)
        self.score_noise = found = compare_scores(*([] if is_pair else [own]), *runs)
        grids, names = found.grids, (RUN, self.name)
        if is_pair and grids.coarser is None:  # the run itself may be of another precision than both
            grids = GridPair.of(own, runs[1], found.residual_std)
        elif is_pair:
            names = _name_of(runs[0], "the first run of the pair"), _name_of(runs[1], "the second run of the pair")
        elif set(self._judged_queries(own)) == set(self._judged_queries(runs[0])):
            counted = count_run(self._evaluation.qrels, sources[0], self._evaluation.options)
            self._second = Evaluation(counted, self._evaluation.options, sources[0], self._evaluation.qrels)
        if found.moves and grids.coarser:
            self._refusal = (
                f"{grids.describe(*names)}. Another precision is another system: score again in the same one, or "
                "compare the two"
            )
        elif found.documents < MIN_DOCUMENTS and (found.moves or self._second is None):
            few = count_noun(found.documents, "document")
            self._refusal = f"only {few} can be compared, at least {MIN_DOCUMENTS} are needed: score more queries twice"

    def _judged_queries(self, run: Run) -> Iterable[str]:
        return (query for query in run.queries if query in self._evaluation.qrels.query_index)

    def _edit(self, source: RunSource) -> RunSource:
        options = self._evaluation.options
        return edit_source(source, drop_self=options.drop_self, distances=options.distances)

    def _rows(self, source: RunSource | None) -> Run:
        """All rows of a run as the evaluation reads them."""
        if source is None:
            raise InputError("The run cannot be read any more. Evaluate it again with this measure.")
        run, dtype = source.rows(), self._evaluation.options.score_dtype
        return run if dtype is None else run.projected(dtype)

    # -- measures ---------------------------------------------------------------------------------------------

    def add_to(
        self, estimates: Mapping[Measure, Estimates], means: Mapping[Measure, Estimate]
    ) -> dict[Measure, Estimate]:
        """The means with their rerun bands, and with what noise of a given size would do."""
        new = {measure: means[measure] for measure in means if measure not in self._found}
        for some in self._together(new):
            self._measure(some, estimates, means)
        added = {}
        for measure, mean in means.items():
            rerun, noise, _ = self._found[measure]
            added[measure] = replace(mean, rerun=rerun, noise=noise)
        return added

    def _together(self, measures: Iterable[Measure]) -> Iterator[list[Measure]]:
        """Measures that look at the same tie groups: one draw serves them all."""
        groups: dict[GroupedJudgments, list[Measure]] = {}
        for measure in measures:
            if measure.needs_subtopics:
                self._found[measure] = None, None, "noise is not followed through judgments for subtopics"
            else:
                groups.setdefault(self._evaluation.grouped(measure), []).append(measure)
        yield from groups.values()

    def _measure(
        self, measures: Sequence[Measure], estimates: Mapping[Measure, Estimates], means: Mapping[Measure, Estimate]
    ) -> None:
        refused = {one: reason for one in measures if (reason := self._refuse(one, means[one]))}
        bands: dict[Measure, _Sample] = {}
        open_ = [one for one in measures if one not in refused]
        if self.score_noise is not None and open_:
            bands = self._draw(open_, estimates, self.score_noise.law if self.score_noise.moves else None)
        valued = [one for one in measures if means[one].expected is not None]
        noisy = self._draw(valued, estimates, self._law) if self._law is not None and valued else {}
        for measure in measures:
            rerun, reason = None, refused.get(measure, "")
            if measure in bands:
                rerun, reason = self._band(measure, means[measure], bands[measure])
            noise = self._noise(measure, estimates[measure], noisy[measure]) if measure in noisy else None
            self._found[measure] = rerun, noise, reason

    def _refuse(self, measure: Measure, mean: Estimate) -> str:
        """Why a measure has no rerun band, if that is known without draws."""
        if mean.expected is None:
            return "it has no value"
        if self._refusal:
            return self._refusal
        noise, evaluation = self.score_noise, self._evaluation
        is_cut = not evaluation.options.complete and evaluation.reaches_last_group(measure).any()
        if noise is not None and noise.moves and is_cut:
            return (
                "the lists may have been cut, and documents could enter them from below. If they are complete, add "
                f"{spell_option('complete')}"
            )
        return ""

    def _draw(
        self, measures: Sequence[Measure], estimates: Mapping[Measure, Estimates], law: NoiseLaw | None
    ) -> dict[Measure, _Sample]:
        """The means of measures under a law; without one, they stay as they are."""
        options, grouped = self._evaluation.options, self._evaluation.grouped(measures[0])
        values: dict[Measure, list[Floats]] = {measure: [] for measure in measures}
        if law is not None:
            draws = NoiseDraws(measures, grouped, self._scored(measures[0]), law, options.seed)
            for found in draws.values(options.samples):
                for measure in measures:
                    values[measure].append(_means(estimates[measure], grouped, found[measure], draws.queries))
        return {measure: _summarize(each, estimates[measure]) for measure, each in values.items()}

    def _scored(self, measure: Measure) -> ScoredLists:
        grouped = self._evaluation.grouped(measure)
        if grouped not in self._lists:
            run = self._rows(self._evaluation.source)
            if self._evaluation.options.judged_only or measure.judged_only:
                run = run.judged_only(self._evaluation.qrels)
            self._lists[grouped] = ScoredLists(run, grouped.ties)
        return self._lists[grouped]

    def _band(self, measure: Measure, mean: Estimate, sample: _Sample) -> tuple[Rerun | None, str]:
        noise, value = self.score_noise, mean.expected
        assert noise is not None and value is not None
        shift, half = sample.mean - value, sample.half_width
        if abs(shift) > sample.std + ATOL:
            numbers = _digits(abs(shift) - sample.std)
            return None, (
                "the noise of the scores is too large for a band: under it the value moves by "
                f"{numbers.signed(shift)} on average, by ±{numbers.number(sample.std)} at random"
            )
        second = None if self._second is None else self._second.estimates([measure])[measure].mean().expected
        if not noise.moves and second is not None and abs(second - value) > ATOL:
            return None, (
                f"no pair of documents of both runs changes its order, but {self.name} has other documents, and prints "
                f"{_digits(abs(second - value)).number(second)}: score the same documents twice"
            )
        how = (
            f"residuals of {count_noun(noise.documents, 'document')}, {self._evaluation.options.samples:,} draws"
            if noise.moves
            else "no pair of documents changes its order"
        )
        return Rerun(
            low=max(value - half, measure.limits[0]),
            high=min(value + half, measure.limits[1]),
            std=sample.std,
            shift=shift,
            queries=noise.queries,
            documents=noise.documents,
            left_out=noise.left_out,
            method=how,
            half_width=half,
            second=second,
            difference=None if second is None else second - value,
        ), ""

    def _noise(self, measure: Measure, found: Estimates, sample: _Sample) -> Noise:
        assert self._law is not None
        grouped, exact = self._evaluation.grouped(measure), None
        if has_formula(measure):
            exact = expected_under_noise(measure, grouped, self._scored(measure), self._law)
        mean = sample.mean if exact is None else found.aggregation.of_values(exact[_places(found, grouped)])
        return Noise(
            expected=mean,
            std=sample.std,
            method="sampled" if exact is None else "exact",
            standard_error=sample.standard_error if exact is None else None,
            std_error=sample.std_error,
            law=str(self._law),
        )

    # -- what is said of it -----------------------------------------------------------------------------------

    def sentence(self, means: Mapping[Measure, Estimate], shown: NumberFormat) -> str:
        """The rerun band of the first measure that has one, beside numbers that are shown so; empty if none has."""
        for measure, mean in means.items():
            band = mean.rerun
            if band is None:
                continue
            twice = f"{count_noun(band.queries, 'query', 'queries')} scored twice"
            said = f"Rerun band: scored again as in {self.name}, this run would print {measure}"
            changes = any(shown.differ(one, mean.expected) for one in (band.low, band.high, band.second))
            if not changes:
                how = f"95%, from {twice}" if band.low < band.high else f"{band.method}; {twice}"
                return f"{said} {shown.number(mean.expected)} again ({how})."
            numbers = _digits(max(band.high - band.low, abs(band.difference or 0.0)))
            low, high, own = (numbers.number(one) for one in (band.low, band.high, mean.expected))
            said += f" between {low} and {high} (95%, from {twice})."
            if band.second is None:
                return said
            if not numbers.differ(band.second, mean.expected):
                return f"{said} {_begin(self.name)} prints {own} too."
            difference = numbers.signed(band.difference)
            return (
                f"{said} In the same queries, {self.name} prints {numbers.number(band.second)} and this run {own} "
                f"({difference})."
            )
        return ""

    def notes(self, measures: Iterable[Measure]) -> Iterator[str]:
        """Why measures have no rerun band, or nothing is known of them under noise."""
        reasons: dict[str, list[str]] = {}
        for measure in measures:
            if (self.score_noise is not None or self._law is not None) and self._found[measure][2]:
                reasons.setdefault(self._found[measure][2], []).append(str(measure))
        for reason, names in reasons.items():
            what = "rerun band" if self.score_noise is not None else "value under noise"
            yield f"No {what} for {join_names(names)}: {reason}."


def _begin(name: str) -> str:
    """A name at the beginning of a sentence: that of a file stays as it is."""
    return name.replace("the ", "The ", 1) if name.startswith("the ") else name


def _name_of(run: Run, otherwise: str) -> str:
    return Path(run.source.path).name if run.source is not None else otherwise


def _places(found: Estimates, grouped: GroupedJudgments) -> Any:
    """The places of the queries that count."""
    index = grouped.ties.qrels.query_index
    return np.array([index[query] for query in found.queries], dtype=np.int64)


def _means(found: Estimates, grouped: GroupedJudgments, drawn: Floats, queries: Any) -> Floats:
    """The mean over the queries that count in each draw; `drawn` has values of some queries, (n_draws, n_queries)."""
    column = np.full(grouped.n_queries, -1)
    column[queries] = np.arange(len(queries))
    at, aggregation = column[_places(found, grouped)], found.aggregation
    fixed = float(aggregation.terms(found.expected[at < 0]).sum())
    totals = aggregation.terms(drawn[:, at[at >= 0]]).sum(axis=1)
    return np.array([aggregation.of_sum(fixed + float(total), len(at)) for total in totals])


def _summarize(each: list[Floats], found: Estimates) -> _Sample:
    """Mean and standard deviation of draws, with their standard errors."""
    if not each:
        mean = found.mean().expected
        return _Sample(0.0 if mean is None else mean, 0.0, 0.0, 0.0, 0.0)
    values = np.concatenate(each)
    n, mean, std = len(values), float(values.mean()), float(values.std(ddof=1))
    if std <= 1e-14:
        return _Sample(mean, 0.0, 0.0, 0.0, 0.0)
    fourth = float(np.mean((values - mean) ** 4)) / std**4
    std_error = std * float(np.sqrt(max(fourth - (n - 3) / (n - 1), 0.0) / n)) / 2
    return _Sample(mean, std, std / n**0.5, std_error, half_width(values))


def _digits(width: float) -> NumberFormat:
    """Enough digits to tell numbers apart that differ by so much."""
    return NumberFormat(int(np.clip(np.ceil(-np.log10(width)) + 1, 4, 8)) if width else 4, leading_zero=False)
