"""Where do files lie, what is on the disk, and who is writing right now?

The lowest room of the lake: folders and object stores, the clock that dates commits, the leases
that announce work under way, and the proof that a file is there before it is read or named.
"""
