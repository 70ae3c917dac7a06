"""How much is a refresh worth, if what it brings lasts until the next one?

Max Benefit (001 section 3.1) ranks by what a refresh brings at once, `p ΔF / E`. That is right for
jobs that are done once. In an overload that goes on, tables take turns, and a refresh lasts until
the next turn of its table: about as long as the last turn lasted, which is ΔF. So it is worth

    index  =  p × ΔF ^ (1 + patience) / E(ΔF)            patience 1

Where starting is what costs, that is Whittle's index for the age of information, under which table
i has its turn every `T ~ sqrt(alpha / p)` seconds, and Σ p T is as small as it can be. (By ΔF alone
turns come every `alpha / p` seconds, and Σ p T is that of taking turns in a circle.) The index
grows without bound while a table waits, so none starves.

If more data comes than can ever be loaded, Σ beta > tracks, nothing lasts until a next turn: some
tables have none. Then Max Benefit is right, which loads what brings most per second. So patience
falls as the data alone takes up the tracks:

    patience  =  1 up to a share of 0.9,  0.1 from 1.0 on
"""

_CALM, _FULL = 0.9, 1.0
_LEAST = 0.1


def patience_at(share: float) -> float:
    """The patience when loading the data alone takes this share of the tracks.

    >>> patience_at(0.5), round(patience_at(1.5), 3)
    (1.0, 0.1)
    """
    above = min(max(share - _CALM, 0.0) / (_FULL - _CALM), 1.0)
    return 1.0 - above * (1.0 - _LEAST)
