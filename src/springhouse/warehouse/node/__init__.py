"""How is a warehouse one node of a cluster?

cluster_settings    the cluster that a node belongs to, as configured
cluster_member      a warehouse beside the agent that votes and takes units
permits             the refreshes that this node may run
unit_survey         the units that the nodes can share
"""
