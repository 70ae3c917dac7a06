"""When is a table refreshed: which of those that want it starts next, and on which track?"""
