"""The three workflows of 004, with the bounds of section 5.1.

The paper says that its rates, selectivities and costs were real ones, but does not name them. The
numbers here are round ones for a web search engine of that time; `bench/results/004` says why each
is plausible. A crawler fetches 24 million pages a day and has fetched 2 billion. Users click a
billion times a day and send 120 million searches.
"""

from springhouse.planner.bounds import Bound, BoundInconsistency, BoundStaleness
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG
from springhouse.planner.search.converters import upserts
from springhouse.planner.search.widgets import workflow
from springhouse.simulate.paper_widgets import (
    cascade,
    distinct,
    distributive_aggregation,
    join,
    opaque,
    split,
    stateless,
    union,
)
from springhouse.simulate.workflow_model import Model, SimulatedSource, Yields

HOUR = 3600.0
DAY = 24 * HOUR
WEEK = 7 * DAY
MILLION, BILLION = 1e6, 1e9

_ACCEPTED = (BASE, STRONG)
_SHINGLING = Yields(effort=2.0)


def search_preprocessing() -> Model:
    """Figure 1: pages with digests are joined with the click scores of their sites."""
    flow = workflow(
        ["pages", "clicks"],
        [
            stateless("digests", "pages"),
            distinct("visitors", "clicks"),
            distributive_aggregation("popularity", "visitors"),
            stateless("scores", "popularity"),
            join("output", "digests", "scores"),
        ],
    )
    bounds: tuple[Bound, ...] = (
        BoundStaleness("output", "digests", 0.0),
        BoundStaleness("scores", None, DAY),
        BoundInconsistency("output", WEEK),
    )
    sites, visitors, pages = 100 * MILLION, 5 * BILLION, 2 * BILLION
    return Model(
        "SearchPreprocessing",
        flow,
        bounds,
        {"output": _ACCEPTED},
        (
            SimulatedSource("pages", HOUR / 4, 250_000.0, MONOTONE),
            SimulatedSource("clicks", HOUR / 4, 10 * MILLION, MONOTONE),
        ),
        widths={
            "pages": 20_000.0,
            "digests": 300.0,
            "clicks": 100.0,
            "visitors counts": 40.0,
            "visitors": 40.0,
            "popularity": 40.0,
            "scores": 40.0,
            "output": 310.0,
        },
        history={
            "pages": pages,
            "digests": pages,
            "clicks": 90 * BILLION,
            "visitors counts": visitors,
            "visitors": visitors,
            "popularity": sites,
            "scores": sites,
            "output": pages,
        },
        yields={
            "digests: batch": _SHINGLING,
            "digests: incremental": _SHINGLING,
            # The clicks of a user on one site become one row; most pairs exist already.
            "visitors counts: batch": Yields(((0.06,),), visitors * 2),
            "visitors counts: incremental": Yields(((0.5,),), visitors),
            "visitors: incremental": Yields(((0.1,),)),
            "popularity: batch": Yields(((1.0,),), sites),
            "popularity: incremental": Yields(((0.5,),), sites),
            "output: batch": Yields(((1.0, 0.0),)),
            # When the score of a site changes, its twenty pages change.
            "output: incremental": Yields(((1.0, 20.0),), pages),
            "output: asynchronous, driven by digests": Yields(((1.0, 0.0),)),
            "output: asynchronous, driven by scores": Yields(((0.0, 20.0),), pages),
        },
        grows={"visitors counts": 0.1, "popularity": 0.0, "scores": 0.0},
    )


def feedback_prioritization() -> Model:
    """Figure 6: searches about news have priority."""
    flow = workflow(
        ["log"],
        [split("split", "log", ["news", "other"]), union("output", "other", "news")],
    )
    bounds: tuple[Bound, ...] = (
        BoundStaleness("output", "news", 0.0),
        BoundStaleness("output", "other", DAY),
    )
    log, news = 10 * BILLION, 0.02
    # The split looks at one flag of a record, and its parts point to where the records are.
    parts = Yields(((news,), (1 - news,)), skimmed=0.01, written=False)
    return Model(
        "FeedbackPrioritization",
        flow,
        bounds,
        {"output": _ACCEPTED},
        (SimulatedSource("log", HOUR / 2, 2.5 * MILLION, MONOTONE),),
        widths={"log": 2_000.0, "news": 2_000.0, "other": 2_000.0, "output": 2_000.0},
        history={"log": log, "news": news * log, "other": (1 - news) * log, "output": log},
        yields={"split: batch": parts, "split: incremental": parts},
    )


def crawl_selection() -> Model:
    """Figure 7: the pages to fetch next."""
    flow = workflow(
        ["fetches"],
        [
            stateless("successful", "fetches"),
            stateless("digests", "fetches"),
            stateless("links", "fetches", makes=upserts),
            distributive_aggregation("indegree", "links"),
            opaque("top unfetched", ["successful", "indegree"]),
            opaque("periodic recrawl", ["successful", "indegree"]),
            opaque("adaptive recrawl", ["digests", "indegree"]),
            cascade(union, "output", ["top unfetched", "periodic recrawl", "adaptive recrawl"]),
        ],
    )
    # The circled numbers of Figure 7: two pathways into each of the three selections.
    bounds: tuple[Bound, ...] = (
        BoundStaleness("successful", None, 0.0),
        BoundStaleness("digests", None, 0.0),
        BoundStaleness("output", "fetches>successful>top unfetched>output of 2", HOUR),
        BoundStaleness("output", "fetches>successful>periodic recrawl>output of 2", DAY),
        BoundStaleness("output", "fetches>digests>adaptive recrawl", 4 * HOUR),
        BoundInconsistency("output", WEEK),
    )
    pages, urls, links_per_page = 2 * BILLION, 10 * BILLION, 20.0
    return Model(
        "CrawlSelection",
        flow,
        bounds,
        {"output": _ACCEPTED},
        (SimulatedSource("fetches", HOUR, 1 * MILLION, MONOTONE),),
        widths={
            "fetches": 20_000.0,
            "successful": 100.0,
            "digests": 300.0,
            "links": 150.0,
            "indegree": 90.0,
            "top unfetched": 80.0,
            "periodic recrawl": 80.0,
            "adaptive recrawl": 80.0,
            "output of 2": 80.0,
            "output": 80.0,
        },
        history={
            "fetches": pages,
            "successful": 0.95 * pages,
            "digests": 0.95 * pages,
            "links": links_per_page * pages,
            "indegree": urls,
            "top unfetched": 1 * MILLION,
            "periodic recrawl": 10 * MILLION,
            "adaptive recrawl": 2 * MILLION,
            "output of 2": 11 * MILLION,
            "output": 13 * MILLION,
        },
        yields={
            "successful: batch": Yields(((0.95,),)),
            "successful: incremental": Yields(((0.95,),)),
            "digests: batch": Yields(((0.95,),), effort=2.0),
            "digests: incremental": Yields(((0.95,),), effort=2.0),
            "links: batch": Yields(((links_per_page,),)),
            "links: incremental": Yields(((links_per_page,),)),
            "indegree: batch": Yields(((1.0,),), urls),
            "indegree: incremental": Yields(((0.5,),), urls),
            "top unfetched: batch": Yields(((1.0, 1.0),), 1 * MILLION),
            "periodic recrawl: batch": Yields(((1.0, 1.0),), 10 * MILLION),
            "adaptive recrawl: batch": Yields(((1.0, 1.0),), 2 * MILLION),
        },
        # Pages that were fetched before have links already; most links lead to known pages.
        grows={"links": 0.2, "indegree": 0.02, "output of 2": 0.0, "output": 0.0},
        changes={"top unfetched": 1.5, "periodic recrawl": 0.2, "adaptive recrawl": 1.0},
    )


PAPER_WORKFLOWS = {
    "search-preprocessing": search_preprocessing,
    "feedback-prioritization": feedback_prioritization,
    "crawl-selection": crawl_selection,
}
