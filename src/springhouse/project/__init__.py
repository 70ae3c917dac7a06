"""What was declared: a project's folder in, one frozen and checked `Project` out."""
