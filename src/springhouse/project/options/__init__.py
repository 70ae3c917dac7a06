"""What do the options of sources and sinks mean?

    calls            does a call such as `read_files('data', format => 'json')` fit its plug-in?
    built_in         one function for each built-in source and sink; its signature lists the options
    file_options     the options of `read_files`
    kafka_options    the options of `read_kafka` and of the sink `kafka`
    reader_values    the values that Spark's file readers accept
    option_values    texts as numbers, flags and timestamps

`springhouse check` and the lake call the same functions, so they agree about every option.
"""
