"""Spark computes, Delta Lake stores: the only room that knows either of them."""
