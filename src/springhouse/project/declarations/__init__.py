"""What are the values that a project consists of?

    declaration    `Project`, `Table`, `View`, flows, queries and the references in them
    contents       what one file declares, with its errors
    names          when two names are the same, and which names are allowed
    durations      "5 minutes" as seconds
    locations      when two texts name the same folder
    secrets        `${env:NAME}` and `${file:PATH}` in settings and options

Everything here is plain data. Readers make it (`sql/`, `python/`, `from_yaml`), `checks/` proves
that it makes sense, and the other rooms of Springhouse use it.
"""
