"""Up to which time is the data complete? (001, section 2.2)"""

from edges import Edges, leading_edge, safe_freshness

from springhouse.refresh.staleness import trailing_edge
from springhouse.units import Instant, Seconds


def test_edges_of_nothing() -> None:
    assert leading_edge([]) is None
    assert trailing_edge([None, Instant(3.0)]) == 3.0


def test_what_is_safe_is_known_from_lateness_or_from_a_punctuation_whichever_is_newer() -> None:
    assert safe_freshness(Instant(100.0)) == 100.0
    assert safe_freshness(Instant(100.0), Seconds(10.0)) == 90.0
    assert safe_freshness(Instant(100.0), Seconds(10.0), Instant(95.0)) == 95.0
    assert safe_freshness(Instant(100.0), Seconds(10.0), Instant(50.0)) == 90.0


def test_a_view_can_be_brought_to_the_trailing_edge_of_what_it_reads() -> None:
    edges = Edges({"a": [], "b": [], "joined": ["a", "b"], "copy": ["a"]})
    assert edges.moved("a", Instant(10.0)) == [("copy", 10.0)]
    assert edges.moved("b", Instant(4.0)) == [("joined", 4.0)]
    assert edges.moved("a", Instant(12.0)) == [("copy", 12.0)]
    assert edges.moved("b", Instant(30.0)) == [("joined", 12.0)]
    assert edges.freshness("b") == 30.0
