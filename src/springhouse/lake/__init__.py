"""Spark computes, Delta Lake stores: only this room uses them."""
