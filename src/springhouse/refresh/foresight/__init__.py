"""A better refresh comes soon: is it better to start another one now, or none?

Start with `foresight`. `lookahead` is the rule of paper 001 (section 3.1), for which `coming` keeps
the expected arrivals. `last_track` says whether a long refresh may take the last free track.
"""
