"""Which inputs of a view move now, if the view may be inconsistent within bounds?

Start with `relaxed_views`, the door. It decides by these steps:

    view_groups        which views are planned together?
    view_workflow      the views as a workflow with bounds
    situation_in_logs  what lies in the logs; `stored_blocks` picks the blocks that a plan may need
    planner.search     the cheapest plan
    planned_refreshes  the plan as refreshes of tables
"""
