"""Which waiting refresh is first, and how much of its data does it load?

Start with `ranks`: it ranks a job again whenever something changes for its table. `basic` has the
keys of the basic algorithms (paper 001, section 3.1), and `patience` the exponent of the default
one. `chopping` cuts long loads (section 3.4). `job_queue` keeps the order.
"""
