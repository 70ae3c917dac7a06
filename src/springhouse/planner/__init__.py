"""How is a table brought up to date: from which versions of its inputs, at what cost?"""
