"""How much is a refresh worth, if its benefit lasts until the next one?

Max Benefit (paper 001, section 3.1) ranks by the immediate benefit, `p ΔF / E`. That is right for
jobs that run once. In a lasting overload tables take turns, and the benefit of a refresh lasts
until the next turn of its table: about as long as the last turn lasted, which is ΔF. So its worth
is

    index  =  p × ΔF ^ (1 + patience) / E(ΔF)            patience 1

If the start is the whole cost, this is Whittle's index for the age of information. Table i then has
its turn every `T ~ sqrt(alpha / p)` seconds, and Σ p T is as small as it can be. (By ΔF alone,
turns come every `alpha / p` seconds, and Σ p T is that of round robin.) The index grows without
bound while a table waits, so no table starves.

If more data comes than can ever be loaded, Σ beta > tracks, some tables get no next turn. Then Max
Benefit is right: it loads the data that brings most per second. So patience falls when loading the
data alone fills the tracks:

    patience  =  1 up to a share of 0.9,  0.1 from 1.0 on
"""

_CALM, _FULL = 0.9, 1.0
_LEAST = 0.1


def patience_at(share: float) -> float:
    """The patience if loading the data alone takes this share of the tracks.

    >>> patience_at(0.5), round(patience_at(1.5), 3)
    (1.0, 0.1)
    """
    above = min(max(share - _CALM, 0.0) / (_FULL - _CALM), 1.0)
    return 1.0 - above * (1.0 - _LEAST)
