"""How is a warehouse one node of a cluster?

cluster_settings    the cluster that a node belongs to, as configured
cluster_member      a warehouse beside the agent that votes and takes units
permits             which refreshes the cluster lets this node run
unit_survey         which units there are for the nodes to share
"""
