"""Does the whole of a project make sense?

rules      one function for each rule; a project that breaks three rules gets three errors
columns    does every query name columns that exist?
"""
