"""The one bound on what a test waits for, whoever keeps it waiting: a server, a process, a condition.

A wait that ends well ends with its event: a long bound costs time only where a test fails. It has to be long,
since beside a load of 20 a process gets a twentieth of a processor.
"""

DEADLINE = 300.0  # seconds; the limit of a whole test in pyproject.toml is longer
