"""Of the activities that have something to do, which is next, and for how long?"""
