"""What does a table inherit from the tables around it?

Start with `inherit`: it passes periods downstream, and priorities and promises upstream, after a
change. `hierarchy` says which table reads which. `priority` has the rules for priorities (paper
001, section 3.3).
"""
