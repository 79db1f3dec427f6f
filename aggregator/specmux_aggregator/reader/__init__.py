"""Endpoints of explain, search, the web UI and validation, and the reader processes behind them.

The event loop sends bytes to a process and passes on its answers. The process is bounded in memory and time,
and can be killed and restarted without harm, since its state can be rebuilt. Its jobs are functions of
the tools, named in ``mounts``; requests and answers are the values of ``requests``.
"""
