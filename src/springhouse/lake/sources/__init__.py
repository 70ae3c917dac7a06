"""Where records come from: partitions of offsets that can be read again, as plug-ins by name."""
